package cli

import (
	"fmt"
	"io"

	"github.com/tarnproject/tarn/internal/render"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// nestedPrinter prints like kubectl, except for objects that are nested so deep that
// indenting them would take gigabytes: it writes the innermost part of those in one line. It
// leaves nothing out.
type nestedPrinter struct {
	printers.ResourcePrinter
	write func(io.Writer, map[string]any) error
}

// PrintObj prints an object or a list.
func (p *nestedPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	content, ok := object.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return p.ResourcePrinter.PrintObj(object, out)
	}
	if whole := content.UnstructuredContent(); !render.Fits(whole) {
		return p.write(out, whole)
	}
	return p.ResourcePrinter.PrintObj(object, out)
}

// widestCell is how many bytes of a cell a table shows. A wider cell would make all rows as
// wide.
const widestCell = 1000

// cutCells shortens cells that are too wide, and reports that.
func (a *app) cutCells(tables []*shownTable) {
	cut := false
	for _, table := range tables {
		for _, row := range table.Rows {
			for i, cell := range row.Cells {
				if text, ok := cell.(string); ok && len(text) > widestCell {
					row.Cells[i], cut = render.Cut(text, widestCell), true
				}
			}
		}
	}
	if cut {
		fmt.Fprintf(a.errOut, "Cells are cut after %d bytes; -o json shows the whole of them.\n", widestCell)
	}
}
