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

// wholePrinter prints all or nothing. A printer with a user's template may fail after it has
// printed a part, and the printers of cli-runtime then repeat all of their input.
type wholePrinter struct{ printers.ResourcePrinter }

// PrintObj prints an object, or says in one line why it cannot be printed.
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

// mostText bounds how much a template may print. A path such as {..} repeats each part of an
// object as often as it is nested.
const mostText = 1 << 30

var errTooMuch = fmt.Errorf("this would print more than %d MiB; ask for less, or take -o json", mostText>>20)

// boundedBuffer refuses text beyond its bound.
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
