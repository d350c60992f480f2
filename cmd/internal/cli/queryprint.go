package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (a *app) printAnswers(answers []*answer, opts *queryOptions) error {
	switch {
	case opts.count:
		return printCounts(a.out, answers)
	case opts.explain:
		return printPlans(a.out, answers)
	}
	a.printHidden(answers, opts)
	if opts.tabular() {
		return a.printFound(answers, opts)
	}
	return a.printFoundObjects(answers, opts)
}

// printCounts prints just a number if that is unambiguous, for scripts.
func printCounts(out io.Writer, answers []*answer) error {
	if len(answers) == 1 {
		_, err := fmt.Fprintln(out, answers[0].count)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, found := range answers {
		fmt.Fprintf(w, "%s\t%d\n", found.resource.Name(), found.count)
	}
	return w.Flush()
}

func printPlans(out io.Writer, answers []*answer) error {
	for i, found := range answers {
		if i > 0 {
			fmt.Fprintln(out)
		}
		_, err := fmt.Fprintf(out, "RESOURCE   %s\nQUERY      %s\nPLAN       %s\nFOUND      %d\n", found.resource.Name(), found.query, found.plan, found.count)
		if err != nil {
			return err
		}
	}
	return nil
}

// printHidden explains why values of Secrets are not found.
func (a *app) printHidden(answers []*answer, opts *queryOptions) {
	if opts.showSecrets {
		return
	}
	for _, found := range answers {
		if found.resource.Secret() && (!opts.tabular() || found.about("data") || found.about("stringData")) {
			fmt.Fprintln(a.errOut, "Values of Secrets are hidden; --show-secrets shows them.")
			return
		}
	}
}

func (a *app) printFound(answers []*answer, opts *queryOptions) error {
	var tables []*shownTable
	for _, found := range answers {
		if len(found.Objects) > 0 {
			tables = append(tables, &shownTable{found.table(), found.resource})
		}
	}
	if len(tables) == 0 {
		a.printNothingFound([]location{{resource: answers[0].resource, namespace: answers[0].namespace}})
	}
	a.cutCells(tables)
	err := opts.printTables(a.out, tables, len(answers) > 1, opts.allNamespaces)
	a.printMore(answers)
	return err
}

func (a *app) printFoundObjects(answers []*answer, opts *queryOptions) error {
	printer, err := opts.printer()
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "List"})
	for _, found := range answers {
		for _, object := range found.Objects {
			list.Items = append(list.Items, *object.DeepCopy()) // printers may write to it
		}
	}
	list.SetResourceVersion("")
	if len(answers) == 1 {
		list.SetResourceVersion(string(answers[0].Version))
		if token := answers[0].token(); token != "" {
			list.SetContinue(token)
		}
	}
	err = printer.PrintObj(list, a.out)
	a.printMore(answers)
	return err
}

func (a *app) printMore(answers []*answer) {
	for _, found := range answers {
		if token := found.token(); token != "" {
			fmt.Fprintf(a.errOut, "There is more: --continue %s\n", token)
		}
	}
}

// table shows the requested fields, from the state of the query.
//
// Why not the server's columns, as get does: the copy does not have them, and the columns of
// a later request could contradict the query.
func (f *answer) table() *metav1.Table {
	fields := slices.DeleteFunc(slices.Clone(f.fields), func(p *fieldpath.Path) bool {
		return slices.Contains([]string{"metadata.name", "metadata.namespace", "metadata.creationTimestamp"}, p.String())
	})
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}}
	if f.clusters {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: clusterHeading, Type: "string"})
	}
	for i, name := range headings(fields) {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: term.Clean(name), Type: "string", Description: fields[i].String()})
	}
	table.ColumnDefinitions = append(table.ColumnDefinitions,
		metav1.TableColumnDefinition{Name: "Age", Type: "string"},
		metav1.TableColumnDefinition{Name: "Owner", Type: "string", Priority: 1},
		metav1.TableColumnDefinition{Name: "Version", Type: "string", Priority: 1})
	for key, object := range f.All() {
		cells := []any{object.GetName()}
		if f.clusters {
			cluster, _ := kube.SplitCluster(key)
			cells = append(cells, cluster)
		}
		for _, field := range fields {
			cells = append(cells, cell(field, object))
		}
		cells = append(cells, ageAt(object.GetCreationTimestamp().Time, f.at), ownerOf(object), object.GetResourceVersion())
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: object}})
	}
	return table
}

// cell is the text of a field; if the field has several values, of all of them.
func cell(field *fieldpath.Path, object *unstructured.Unstructured) string {
	values, _ := field.Append(nil, object)
	if len(values) == 0 {
		return "<none>"
	}
	var text strings.Builder
	for i, value := range values {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(value.String())
		if text.Len() > widestCell {
			break // the rest would be cut
		}
	}
	return text.String()
}

func ownerOf(object *unstructured.Unstructured) string {
	for _, owner := range object.GetOwnerReferences() {
		return strings.ToLower(owner.Kind) + "/" + owner.Name
	}
	return "<none>"
}

// headings names fields by their last names, and in full if those are the same.
func headings(fields []*fieldpath.Path) []string {
	count := map[string]int{"NAMESPACE": 1, "NAME": 1, "AGE": 1, "OWNER": 1, "VERSION": 1}
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = lastName(field.String())
		count[strings.ToUpper(names[i])]++
	}
	for i, field := range fields {
		if count[strings.ToUpper(names[i])] > 1 {
			names[i] = field.String()
		}
	}
	return names
}

// lastName is image of spec.containers[*].image, and example.com/team of
// metadata.labels['example.com/team'].
func lastName(path string) string {
	if inner, ok := strings.CutSuffix(path, "']"); ok {
		if _, key, ok := strings.Cut(inner, "['"); ok {
			return key
		}
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	if bracket := strings.IndexByte(name, '['); bracket > 0 {
		name = name[:bracket]
	}
	return name
}
