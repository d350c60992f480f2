package ondisk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/sqlite"
)

// codec encodes objects as on the wire: as protobuf where the type has it, else as JSON.
//
// Why it encodes again instead of keeping the bytes of the response: fields may have been
// dropped and transforms applied since, and the disk must have what the copy serves. It
// takes 8 µs for a real pod.
type codec[T any] struct {
	of       kube.Origin
	decoder  *wire.Decoder
	protobuf bool
	columns  *columns.Reader
	wide     wideFields
	// leftOut holds the annotations that are not written.
	leftOut []string
	// transform names the transform, if there is one.
	transform string
}

func newCodec[T any](of kube.Origin, s settings) (*codec[T], error) {
	decoder, err := of.Decoder()
	if err != nil {
		return nil, err
	}
	c := &codec[T]{of: of, decoder: decoder, leftOut: s.leftOut()}
	c.protobuf = decoder.HasProtobuf() && of.Object.Implements(reflect.TypeFor[message]())
	c.wide = wideFieldsOf(of, c.protobuf)
	if of.Transformed {
		c.transform = transformName(s.transform)
	}
	c.columns, err = columns.NewReader(of.Resource, of.Object, slices.DeleteFunc(slices.Clone(s.columns), func(column Column) bool {
		return of.Cluster != nil && strings.EqualFold(column.Name, clusterColumn)
	})...)
	return c, err
}

// Schema names the encoding. The Go type is part of it, since the same bytes mean
// something else for another type.
func (c *codec[T]) Schema() string {
	how := "json"
	if c.protobuf {
		how = "protobuf"
	}
	if len(c.leftOut) == 0 {
		how += " whole"
	}
	return fmt.Sprintf("%s %s as %v", c.of.Resource.GroupVersion(), how, c.of.Object)
}

func (c *codec[T]) Append(buf []byte, object T) ([]byte, error) {
	if reflect.TypeOf(object) != c.of.Object {
		// It would be decoded as another type, perhaps without an error.
		return nil, fmt.Errorf("a transform returned a %T, but objects of type %v are kept on disk", object, c.of.Object)
	}
	object = c.written(object)
	if c.protobuf {
		return appendMessage(buf, any(object).(message))
	}
	raw, err := plainJSON(object)
	return append(buf, raw...), err
}

// written is the object without the annotations that are not written.
func (c *codec[T]) written(object T) T {
	return kube.StripAnnotations(object, c.leftOut...)
}

// plainJSON encodes an object; for an unstructured one, its map.
func plainJSON(object any) ([]byte, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return json.Marshal(u.Object)
	}
	return json.Marshal(object)
}

func (c *codec[T]) Decode(raw []byte) (object T, err error) {
	var decoded any
	if c.protobuf {
		decoded, err = c.decoder.Protobuf(raw)
	} else {
		decoded, err = c.decoder.JSON(raw)
	}
	if err != nil {
		return object, err
	}
	object, ok := decoded.(T)
	if !ok {
		return object, fmt.Errorf("the decoder made a %T", decoded)
	}
	c.of.Mark(object)
	return object, nil
}

// clusterColumn is the column with the name of the cluster, if the copy has several. It is
// computed: the name is in the key.
const clusterColumn = "cluster"

const clusterOfKey = "substr({key}, 1, instr({key}, '/') - 1)"

// versionColumn is the column with the version of each state.
const versionColumn = "resource_version"

// Table is the resource's table in SQL.
func (c *codec[T]) Table() sqlite.Table {
	t := sqlite.Table{}
	var indexed []string
	for _, col := range c.columns.Columns() {
		t.Columns = append(t.Columns, sqlite.Column{Name: col.Name, Type: col.Type, Version: col.Name == versionColumn})
		if col.Index {
			indexed = append(indexed, col.Name)
		}
	}
	addIndexes(&t, c.of.Resource.GroupResource(), indexed, c.of.Cluster != nil)
	t.Columns = append(t.Columns, c.wide.columns()...)
	if c.of.Cluster != nil {
		t.Columns = append(t.Columns, sqlite.Column{Name: clusterColumn, Type: "TEXT", Expr: clusterOfKey})
	}
	return t
}

// Row returns the values of the columns.
func (c *codec[T]) Row(object T, raw []byte) (sqlite.Row, error) {
	o, ok := any(c.written(object)).(metav1.Object)
	if !ok {
		return sqlite.Row{}, errors.New("the object has no metadata")
	}
	row := sqlite.Row{Values: asSQLite(c.columns.Values(o)), Labels: o.GetLabels()}
	return row, c.wide.add(&row, o, raw)
}
