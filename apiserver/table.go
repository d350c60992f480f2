package apiserver

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// column is one of a table that the server prints for kubectl.
type column struct {
	metav1.TableColumnDefinition
	cell func(runtime.Object) any
}

// columns returns what to show of a kind: what its definition says, what
// kubectl's users are used to, else name and age.
func (e *endpoint) columns() []column {
	if e.definition == nil {
		if extra, ok := builtinColumns[e.stored.knownKind().GroupKind()]; ok {
			return append([]column{nameColumn}, extra...)
		}
		return []column{nameColumn, ageColumn}
	}
	if len(e.definition.AdditionalPrinterColumns) == 0 {
		return []column{nameColumn, ageColumn}
	}
	columns := []column{nameColumn}
	for _, c := range e.definition.AdditionalPrinterColumns {
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		columns = append(columns, column{
			metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority},
			pathCell(c.JSONPath, c.Type),
		})
	}
	return columns
}

// pathCell finds a cell by JSON path; what is not there, or not of the type, is
// shown as nothing.
func pathCell(path, kind string) func(runtime.Object) any {
	template := "{" + path + "}"
	return func(object runtime.Object) any {
		custom, ok := object.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		finder := jsonpath.New("column").AllowMissingKeys(true)
		if finder.Parse(template) != nil {
			return nil
		}
		results, err := finder.FindResults(custom.Object)
		if err != nil || len(results) == 0 || len(results[0]) == 0 {
			return nil
		}
		return cellOf(results[0][0].Interface(), kind)
	}
}

func cellOf(value any, kind string) any {
	text, isText := value.(string)
	switch kind {
	case "date":
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return age(metav1.NewTime(at))
		}
		return nil
	case "string":
		if isText {
			return text
		}
		data, err := encodeJSON(value)
		if err != nil {
			return nil
		}
		return string(data)
	case "integer", "number", "boolean":
		if isText {
			return nil
		}
	}
	return value
}

func age(at metav1.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(at.Time))
}

// sendTable answers with rows.
func (s *Reader) sendTable(r *request, code int, entries []*Object, meta metav1.ListMeta) error {
	t, err := r.table(entries, meta, r.columns(), true)
	if err != nil {
		return err
	}
	data, err := encodeJSON(t)
	if err != nil {
		return err
	}
	r.send(code, tableKind, data)
	return nil
}

func (r *request) table(entries []*Object, meta metav1.ListMeta, columns []column, headed bool) (*metav1.Table, error) {
	t := &metav1.Table{ListMeta: meta, Rows: []metav1.TableRow{}}
	t.SetGroupVersionKind(tableKind.GroupKind().WithVersion(r.answer.shapeVersion))
	if headed {
		for _, c := range columns {
			t.ColumnDefinitions = append(t.ColumnDefinitions, c.TableColumnDefinition)
		}
	}
	for _, e := range entries {
		object, err := e.object()
		if err != nil {
			return nil, err
		}
		known, err := r.stored.asKnown(object)
		if err != nil {
			return nil, err
		}
		row := metav1.TableRow{Cells: make([]any, len(columns))}
		for i, c := range columns {
			row.Cells[i] = c.cell(known)
		}
		if row.Object, err = r.rowObject(object); err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// checkTable says what is wrong with the parameters of a table, if one is asked for.
func (r *request) checkTable() error {
	if r.answer.shape != table {
		return nil
	}
	options := &metav1.TableOptions{IncludeObject: metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))}
	if problems := metav1validation.ValidateTableOptions(options); len(problems) > 0 {
		return apierrors.NewBadRequest("Unable to convert to Table as requested: " + problems.ToAggregate().Error())
	}
	return nil
}

// rowObject is what comes with a row: the metadata unless the client says
// otherwise.
func (r *request) rowObject(object runtime.Object) (extension runtime.RawExtension, err error) {
	switch metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject")) {
	case metav1.IncludeNone:
		return extension, nil
	case metav1.IncludeObject:
		object, err = r.fromStored(object)
	default:
		object, err = partialOf(object)
	}
	if err == nil {
		extension.Raw, err = encodeJSON(object)
	}
	return extension, err
}

// tableRow is an event of a watch: a table of one row. Only the first one has the
// columns.
func (o *stream) tableRow(e *Object) ([]byte, error) {
	headed := !o.headed
	o.headed = true
	t, err := o.request.table([]*Object{e}, metav1.ListMeta{ResourceVersion: versionText(e.version)}, o.request.columns(), headed)
	if err != nil {
		return nil, err
	}
	return encodeJSON(t)
}

// encodeTableBookmark puts a bookmark into a row, where clients who watch tables
// look for it.
func encodeTableBookmark(object metav1.Object) ([]byte, error) {
	data, err := encodeJSON(object)
	if err != nil {
		return nil, err
	}
	t := &metav1.Table{ListMeta: metav1.ListMeta{ResourceVersion: object.GetResourceVersion()}}
	t.SetGroupVersionKind(tableKind)
	t.Rows = []metav1.TableRow{{Cells: []any{}, Object: runtime.RawExtension{Raw: data}}}
	return encodeJSON(t)
}
