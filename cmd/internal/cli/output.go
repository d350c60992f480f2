package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/internal/render"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
)

// output holds kubectl's flags for how objects are printed. The printers of cli-runtime,
// which are kubectl's, do the printing.
type output struct {
	format            string
	noHeaders         bool
	showLabels        bool
	showManagedFields bool
	showSecrets       bool
	sortBy            string
}

// formats are the values of -o. A format with = at the end is followed by its argument.
var formats = []string{"wide", "name", "json", "yaml", "jsonpath=", "go-template=", "custom-columns="}

func (o *output) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "", "how to print: wide, name, json, yaml, jsonpath=…, go-template=…, custom-columns=…")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "print no column headings")
	flags.BoolVar(&o.showLabels, "show-labels", false, "add a column of labels")
	flags.BoolVar(&o.showManagedFields, "show-managed-fields", false, "keep metadata.managedFields in json and yaml")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "show the values of Secrets")
	_ = cmd.RegisterFlagCompletionFunc("output", choices(formats...))
}

// bindSort is for commands that sort only what they print.
func (o *output) bindSort(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "field to sort by: .metadata.creationTimestamp")
}

// unsupported returns a flag that was given and that a watch does not support, if there is
// one.
func (o *output) unsupported(cmd *cobra.Command) string {
	for _, flag := range []string{"no-headers", "show-labels", "show-managed-fields", "show-secrets", "sort-by"} {
		if cmd.Flags().Changed(flag) {
			return flag
		}
	}
	return ""
}

// check rejects wrong formats before any request.
func (o *output) check() error {
	if _, err := newOrder(o.sortBy); err != nil {
		return err
	}
	if o.tabular() {
		return nil
	}
	_, err := o.printer()
	return err
}

// tabular reports whether the output has columns.
func (o *output) tabular() bool { return o.format == "" || o.format == "wide" }

// printer returns the printer of a single object, or of a list of any kinds.
func (o *output) printer() (printers.ResourcePrinter, error) {
	name, argument, _ := strings.Cut(o.format, "=")
	var p printers.ResourcePrinter
	var err error
	switch name {
	case "name":
		return &namesPrinter{printers.NamePrinter{ShortOutput: true}}, nil
	case "json":
		p = &nestedPrinter{&printers.JSONPrinter{}, func(out io.Writer, content map[string]any) error { return render.WriteJSON(out, content) }}
	case "yaml":
		p = &nestedPrinter{&printers.YAMLPrinter{}, render.WriteYAML}
	case "jsonpath":
		var path *printers.JSONPathPrinter
		if path, err = printers.NewJSONPathPrinter(argument); err == nil {
			path.AllowMissingKeys(true)
			p = wholePrinter{path}
		}
	case "go-template":
		var template *printers.GoTemplatePrinter
		if template, err = printers.NewGoTemplatePrinter([]byte(argument)); err == nil {
			template.AllowMissingKeys(true)
			p = wholePrinter{template}
		}
	case "custom-columns":
		columns, err := newColumnsPrinter(argument, o.noHeaders)
		return wholePrinter{columns}, err
	default:
		return nil, usagef("-o cannot be %q%s; it is one of %s", o.format, didYouMean(near(name, formats)), strings.Join(formats, ", "))
	}
	if err != nil {
		return nil, usagef("-o %s: %v", o.format, err)
	}
	if argument == "" && slices.Contains(formats, name+"=") {
		return nil, usagef("-o %s needs a value that says what to print: -o %s=…", name, name)
	}
	if !o.showManagedFields {
		p = &printers.OmitManagedFieldsPrinter{Delegate: p}
	}
	return p, nil
}

// printObjects prints objects in the format of -o: a single one as itself, several as a list.
func (o *output) printObjects(out io.Writer, objects []unstructured.Unstructured, single bool) error {
	order, err := newOrder(o.sortBy)
	if err != nil {
		return err
	}
	order.sort(objects)
	printer, err := o.printer()
	if err != nil {
		return err
	}
	if single && len(objects) == 1 {
		return printer.PrintObj(&objects[0], out)
	}
	list := &unstructured.UnstructuredList{Items: objects}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "List"})
	list.SetResourceVersion("")
	return printer.PrintObj(list, out)
}

// shownTable is the server's table of a resource.
type shownTable struct {
	*metav1.Table
	resource mirror.Resource
}

// printTables prints tables one after the other, with kinds before the names if
// there may be several.
func (o *output) printTables(out io.Writer, tables []*shownTable, withKind, withNamespace bool) error {
	order, err := newOrder(o.sortBy)
	if err != nil {
		return err
	}
	for i, table := range tables {
		if i > 0 && !o.noHeaders {
			fmt.Fprintln(out)
		}
		order.sortRows(table.Rows)
		cleanTable(table.Table)
		printer := printers.NewTablePrinter(printers.PrintOptions{
			Wide: o.format == "wide", NoHeaders: o.noHeaders, ShowLabels: o.showLabels,
			WithNamespace: withNamespace && table.resource.Namespaced,
			WithKind:      withKind,
			Kind:          schema.GroupKind{Group: table.resource.GVR.Group, Kind: table.resource.Kind},
		})
		if err := printer.PrintObj(table.Table, out); err != nil {
			return err
		}
	}
	return nil
}
