package columns

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/fieldpath"
)

// Column is a column of a resource's table: the value of a field.
type Column struct {
	// Name in SQL, Type one of TEXT, INTEGER, REAL and JSON.
	Name, Type string
	// Path to the field, see [fieldpath.Parse]; or, of unstructured objects, a
	// JSONPath in braces, as kubectl has it: {.status.conditions[?(@.type=="Ready")].status}.
	Path string
	// Index says that the column has an index.
	Index bool
}

// JSON is the text of a JSON value in a column.
type JSON []byte

// Of returns the columns of a resource's table beside those that all tables have:
// what kubectl shows, or what is often queried. Some are computed, and have no Path.
func Of(resource schema.GroupResource) []Column {
	var all []Column
	for _, c := range append(kindColumns[resource], computedColumns(resource)...) {
		all = append(all, c.Column)
	}
	return all
}

// column is a column with the function that reads it.
type column struct {
	Column
	// computed says that it needs typed objects.
	computed bool
	read     func(metav1.Object) (any, error)
}

// field returns a column for a field.
func field(name, kind, path string) column {
	p := fieldpath.MustParse(path)
	return column{Column: Column{Name: name, Type: kind, Path: path}, read: func(o metav1.Object) (any, error) {
		v, err := p.First(o)
		return sqlValue(v, kind), err
	}}
}

func (c column) index() column {
	c.Index = true
	return c
}

// sqlValue converts a field's value to SQL. A missing field is NULL.
func sqlValue(v fieldpath.Value, kind string) any {
	n, isNumber := v.Number()
	switch {
	case v.IsMissing():
		return nil
	case kind == "REAL" && isNumber:
		return n
	case kind == "INTEGER" && isNumber:
		return int64(n)
	case v.Kind() == fieldpath.Bool:
		return v == fieldpath.BoolValue(true)
	}
	return v.String()
}

// A Reader reads the columns of one resource's table from objects. Any number of
// goroutines may use it.
type Reader struct {
	columns []column
	// typed converts an unstructured object to the type that computed columns need; nil if
	// there are none.
	typed func(*unstructured.Unstructured) metav1.Object
}

// NewReader returns the reader of a resource whose objects have a Go type. Its columns are,
// in their order: metadata, those of the kind, those of the caller.
func NewReader(resource schema.GroupVersionResource, object reflect.Type, more ...Column) (*Reader, error) {
	all := append([]column(nil), metadataColumns...)
	r := &Reader{typed: typedFor(resource, object)}
	kind := resource.GroupResource()
	if object == metadataType {
		kind = schema.GroupResource{} // there is only metadata
	}
	all = append(all, kindColumns[kind]...)
	if object != unstructuredType || r.typed != nil {
		all = append(all, computedColumns(kind)...)
	}
	for _, c := range more {
		if object == unstructuredType && strings.HasPrefix(c.Path, "{") {
			col, err := byJSONPath(c)
			if err != nil {
				return nil, err
			}
			all = append(all, col)
			continue
		}
		p, err := fieldpath.Parse(c.Path)
		if err != nil {
			return nil, fmt.Errorf("the column %s: %w", c.Name, err)
		}
		if err := p.Check(object); err != nil {
			return nil, fmt.Errorf("the column %s: %w", c.Name, err)
		}
		col := field(c.Name, c.Type, c.Path)
		col.Index = c.Index
		all = append(all, col)
	}
	r.columns = all
	return r, nil
}

// Columns returns the columns, in the order of Values.
func (r *Reader) Columns() []Column {
	all := make([]Column, len(r.columns))
	for i, c := range r.columns {
		all[i] = c.Column
	}
	return all
}

// WithoutMetadata returns a reader without the columns that every table has.
func (r *Reader) WithoutMetadata() *Reader {
	return &Reader{columns: r.columns[len(metadataColumns):], typed: r.typed}
}

// TableName is the name of a resource's table.
func TableName(resource schema.GroupResource) string {
	name := resource.Resource
	if resource.Group != "" {
		name += "_" + resource.Group
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// computed returns a column for a function.
func computed(name, kind string, read func(o metav1.Object) any) column {
	return column{Column: Column{Name: name, Type: kind}, read: func(o metav1.Object) (any, error) { return read(o), nil }}
}

// seconds is a time that SQL can compute with: unixepoch('now') - created.
func seconds(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Unix()
}

// text is a string, NULL if it is empty.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// owner is the controller of an object, or its first owner.
func owner(o metav1.Object, read func(metav1.OwnerReference) string) any {
	owners := o.GetOwnerReferences()
	for _, r := range owners {
		if r.Controller != nil && *r.Controller {
			return text(read(r))
		}
	}
	if len(owners) > 0 {
		return text(read(owners[0]))
	}
	return nil
}

// Metadata returns the columns that every table has, except for labels and the object itself.
func Metadata() []Column {
	all := make([]Column, len(metadataColumns))
	for i, c := range metadataColumns {
		all[i] = c.Column
	}
	return all
}

// Resources returns the resources that have columns of their own.
func Resources() []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(kindColumns), func(a, b schema.GroupResource) int { return strings.Compare(TableName(a), TableName(b)) })
}

// metadataColumns holds the columns that every table has.
var metadataColumns = []column{
	computed("namespace", "TEXT", func(o metav1.Object) any { return text(o.GetNamespace()) }),
	computed("name", "TEXT", func(o metav1.Object) any { return o.GetName() }),
	computed("uid", "TEXT", func(o metav1.Object) any { return text(string(o.GetUID())) }),
	computed("resource_version", "TEXT", func(o metav1.Object) any { return text(o.GetResourceVersion()) }),
	computed("generation", "INTEGER", func(o metav1.Object) any { return o.GetGeneration() }),
	computed("created", "INTEGER", func(o metav1.Object) any { return seconds(o.GetCreationTimestamp().Time) }),
	computed("deleted", "INTEGER", func(o metav1.Object) any {
		if t := o.GetDeletionTimestamp(); t != nil {
			return seconds(t.Time)
		}
		return nil
	}),
	computed("owner_kind", "TEXT", func(o metav1.Object) any {
		return owner(o, func(r metav1.OwnerReference) string { return r.Kind })
	}),
	computed("owner_name", "TEXT", func(o metav1.Object) any {
		return owner(o, func(r metav1.OwnerReference) string { return r.Name })
	}),
	computed("owner_uid", "TEXT", func(o metav1.Object) any {
		return owner(o, func(r metav1.OwnerReference) string { return string(r.UID) })
	}),
}

// Values reads the columns: each value is nil, a string, an int64, a float64, a bool or
// [JSON]. A column that cannot be read is nil: the object is still stored and shown.
func (r *Reader) Values(o metav1.Object) []any {
	from := o
	if u, ok := o.(*unstructured.Unstructured); ok && r.typed != nil {
		from = r.typed(u)
	}
	values := make([]any, 0, len(r.columns)+4) // with room for what a caller adds
	for _, c := range r.columns {
		source := o
		if c.computed {
			source = from
		}
		v, err := c.read(source)
		if err != nil {
			v = nil
		}
		values = append(values, v)
	}
	return values
}
