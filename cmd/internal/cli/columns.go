package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// columnsPrinter prints the fields of -o custom-columns. It is the only printer of
// kubectl that is not in cli-runtime.
type columnsPrinter struct {
	names     []string
	paths     []*jsonpath.JSONPath
	noHeaders bool
}

func newColumnsPrinter(spec string, noHeaders bool) (*columnsPrinter, error) {
	p := &columnsPrinter{noHeaders: noHeaders}
	for column := range strings.SplitSeq(spec, ",") {
		name, path, ok := strings.Cut(column, ":")
		if !ok || name == "" || path == "" {
			return nil, usagef("-o custom-columns: %q is not a column; write NAME:.metadata.name,NODE:.spec.nodeName", column)
		}
		finder := jsonpath.New(name).AllowMissingKeys(true)
		if err := finder.Parse(braced(path)); err != nil {
			return nil, usagef("-o custom-columns: the path of %s is wrong: %v", name, err)
		}
		p.names, p.paths = append(p.names, name), append(p.paths, finder)
	}
	return p, nil
}

// braced makes a JSON path of what users write: .metadata.name, metadata.name and
// {.metadata.name} mean the same.
func braced(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	return "{." + strings.TrimPrefix(path, ".") + "}"
}

// PrintObj prints an object, or each object of a list, in columns. If a value is so long that
// it would make all rows that wide, it separates values with tabs instead.
func (p *columnsPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	rows, aligned := [][]string{}, true
	if !p.noHeaders {
		rows = append(rows, p.names)
	}
	add := func(item runtime.Object) error {
		cells, err := p.cells(item)
		rows = append(rows, cells)
		aligned = aligned && !slices.ContainsFunc(cells, func(cell string) bool { return len(cell) > widestCell })
		return err
	}
	var err error
	if meta.IsListType(object) {
		err = meta.EachListItem(object, add)
	} else {
		err = add(object)
	}
	if err != nil {
		return err
	}
	w := io.Writer(out)
	if aligned {
		columns := printers.GetNewTabWriter(out)
		defer columns.Flush()
		w = columns
	}
	for _, cells := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

func (p *columnsPrinter) cells(object runtime.Object) ([]string, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("custom columns of a %T cannot be printed", object)
	}
	cells := make([]string, len(p.paths))
	for i, path := range p.paths {
		found, err := path.FindResults(content.Object)
		if err != nil {
			return nil, fmt.Errorf("-o custom-columns: %s of %s: %w", p.names[i], content.GetName(), err)
		}
		var values []string
		for _, result := range found {
			for _, value := range result {
				values = append(values, term.Clean(fmt.Sprint(value.Interface())))
			}
		}
		if cells[i] = strings.Join(values, ","); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	return cells, nil
}
