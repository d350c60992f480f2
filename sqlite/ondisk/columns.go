package ondisk

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/sqlite"
)

// Column is a column of a resource's table: the value of a field.
type Column = columns.Column

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	metadataType     = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

// Columns is [columns.Of].
func Columns(resource schema.GroupResource) []Column { return columns.Of(resource) }

// DefinedColumns is [columns.Defined].
func DefinedColumns(definition *unstructured.Unstructured, version string) []Column {
	return columns.Defined(definition, version)
}

// TableName is [columns.TableName].
func TableName(resource schema.GroupResource) string { return columns.TableName(resource) }

// Show returns the columns of a resource's table beside its metadata, including those of
// its definition, and a function that reads them from an object. It is for programs that
// show objects as SQL does. Any number of goroutines may use it.
func Show(resource schema.GroupVersionResource, more ...Column) (shown []Column, read func(*unstructured.Unstructured) []any, err error) {
	reader, err := columns.NewReader(resource, unstructuredType, more...)
	if err != nil {
		return nil, nil, err
	}
	reader = reader.WithoutMetadata()
	return reader.Columns(), func(u *unstructured.Unstructured) []any { return asSQLite(reader.Values(u)) }, nil
}

// asSQLite turns values of columns into what package sqlite writes.
func asSQLite(values []any) []any {
	for i, v := range values {
		if raw, ok := v.(columns.JSON); ok {
			values[i] = sqlite.JSON(raw)
		}
	}
	return values
}
