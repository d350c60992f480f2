package cli

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// columnsPrinter prints the fields that -o custom-columns asks for. It is the
// one printer of kubectl's that is not in cli-runtime.
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

// braced makes a JSON path of what people write: .metadata.name, metadata.name
// and {.metadata.name} mean the same.
func braced(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	return "{." + strings.TrimPrefix(path, ".") + "}"
}

// PrintObj prints an object, or each of a list.
func (p *columnsPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	w := printers.GetNewTabWriter(out)
	defer w.Flush()
	if !p.noHeaders {
		fmt.Fprintln(w, strings.Join(p.names, "\t"))
	}
	if !meta.IsListType(object) {
		return p.print(object, w)
	}
	return meta.EachListItem(object, func(item runtime.Object) error { return p.print(item, w) })
}

func (p *columnsPrinter) print(object runtime.Object, w io.Writer) error {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("custom columns of a %T cannot be printed", object)
	}
	cells := make([]string, len(p.paths))
	for i, path := range p.paths {
		found, err := path.FindResults(content.Object)
		if err != nil {
			return fmt.Errorf("-o custom-columns: %s of %s: %w", p.names[i], content.GetName(), err)
		}
		var values []string
		for _, result := range found {
			for _, value := range result {
				values = append(values, printers.EscapeTerminal(fmt.Sprint(value.Interface())))
			}
		}
		if cells[i] = strings.Join(values, ","); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(cells, "\t"))
	return err
}
