package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// wholePrinter prints all or nothing. Printers that a user's template drives find
// out late that it does not fit, and those of cli-runtime then repeat everything
// that they were given.
type wholePrinter struct{ printers.ResourcePrinter }

// PrintObj prints an object, or says in one line why it cannot be.
func (p wholePrinter) PrintObj(object runtime.Object, out io.Writer) error {
	var text bytes.Buffer
	if err := p.ResourcePrinter.PrintObj(object, &text); err != nil {
		if said, _, repeats := strings.Cut(err.Error(), ". Printing more information"); repeats {
			return errors.New(said)
		}
		return err
	}
	_, err := text.WriteTo(out)
	return err
}
