package cli

import (
	"io"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// cleanTable removes from a table what a terminal would treat as a command. The table printer
// escapes only one such character. It shows a value up to its first line break, so line
// breaks stay.
func cleanTable(t *metav1.Table) {
	for i := range t.ColumnDefinitions {
		t.ColumnDefinitions[i].Name = term.Clean(t.ColumnDefinitions[i].Name)
	}
	for _, row := range t.Rows {
		for i, cell := range row.Cells {
			text, ok := cell.(string)
			if !ok {
				continue
			}
			rest := ""
			if at := strings.IndexAny(text, "\f\n\r"); at >= 0 {
				text, rest = text[:at], "\n"
			}
			row.Cells[i] = term.Clean(text) + rest
		}
	}
}

// namesPrinter prints kinds and names, without what a terminal would treat as a command:
// roles may have almost any name.
type namesPrinter struct{ printers.NamePrinter }

func (p *namesPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	if meta.IsListType(object) {
		return meta.EachListItem(object, func(item runtime.Object) error { return p.PrintObj(item, out) })
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: term.Clean(accessor.GetName())}}
	named.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	return p.NamePrinter.PrintObj(named, out)
}
