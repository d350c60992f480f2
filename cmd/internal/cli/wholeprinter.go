package cli

import (
	"bytes"
	"errors"
	"fmt"
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
	var text boundedBuffer
	if err := p.ResourcePrinter.PrintObj(object, &text); err != nil {
		if text.full {
			return errTooMuch
		}
		if said, _, repeats := strings.Cut(err.Error(), ". Printing more information"); repeats {
			return errors.New(said)
		}
		return err
	}
	_, err := text.WriteTo(out)
	return err
}

// mostText is how much a template may print. A path such as {..} gives each part of
// an object as often as it is nested.
const mostText = 1 << 30

var errTooMuch = fmt.Errorf("this would print more than %d MiB; ask for less, or take -o json", mostText>>20)

// boundedBuffer refuses what is too much.
type boundedBuffer struct {
	bytes.Buffer
	full bool
}

func (b *boundedBuffer) Write(text []byte) (int, error) {
	if b.Len()+len(text) > mostText {
		b.full = true
		return 0, errTooMuch
	}
	return b.Buffer.Write(text)
}
