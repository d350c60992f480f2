package share

import (
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// mapReader reads maps of one type. A map is one part: its content is not
// shared by itself.
//
// The three kinds that most objects have are read with their Go types;
// reflection costs five times as much. A map whose keys are of a named string
// type has the same memory layout as one whose keys are strings.
type mapReader interface {
	// hash adds the content to h, independent of its order.
	hash(w *worker, m unsafe.Pointer, h uint64, depth int) uint64
	equal(c *comparer, a, b unsafe.Pointer, depth int) bool
	// clone returns a map of the same content and nothing of the memory; see clone.go.
	clone(w *worker, m unsafe.Pointer) unsafe.Pointer
}

func (f fields) mapReaderOf(t reflect.Type) mapReader {
	if t.Key().Kind() == reflect.String {
		switch {
		case t.Elem().Kind() == reflect.String:
			return stringMap{}
		case t.Elem() == shape.QuantityType:
			return typedMap[resource.Quantity]{f.compiler.plan(t.Elem())}
		case t.Elem() == reflect.TypeFor[[]byte]():
			return typedMap[[]byte]{f.compiler.plan(t.Elem())}
		}
	}
	switch t.Key().Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &reflectMap{t, f.compiler.plan(t.Key()), f.compiler.plan(t.Elem())}
	default:
		return opaqueMap{}
	}
}

// stringMap is a map from strings to strings.
type stringMap struct{}

func (stringMap) hash(_ *worker, m unsafe.Pointer, h uint64, _ int) uint64 {
	sum := uint64(0)
	for k, v := range *(*map[string]string)(unsafe.Pointer(&m)) {
		sum += mix(hashString(k), hashString(v), emptySalt)
	}
	return mix(h, sum, boolSalt)
}

func (stringMap) equal(_ *comparer, a, b unsafe.Pointer, _ int) bool {
	x, y := *(*map[string]string)(unsafe.Pointer(&a)), *(*map[string]string)(unsafe.Pointer(&b))
	if len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if other, ok := y[k]; !ok || other != v {
			return false
		}
	}
	return true
}

// typedMap is a map from strings to values of a known type.
type typedMap[V any] struct{ elem *plan }

func (t typedMap[V]) hash(w *worker, m unsafe.Pointer, h uint64, depth int) uint64 {
	sum := uint64(0)
	for k, v := range *(*map[string]V)(unsafe.Pointer(&m)) {
		sum += w.hash(t.elem, unsafe.Pointer(&v), hashString(k), depth)
	}
	return mix(h, sum, boolSalt)
}

func (t typedMap[V]) equal(c *comparer, a, b unsafe.Pointer, depth int) bool {
	x, y := *(*map[string]V)(unsafe.Pointer(&a)), *(*map[string]V)(unsafe.Pointer(&b))
	if len(x) != len(y) {
		return false
	}
	for k, v := range x {
		other, ok := y[k]
		if !ok || !c.equal(t.elem, unsafe.Pointer(&v), unsafe.Pointer(&other), depth) {
			return false
		}
	}
	return true
}

// reflectMap is any other map.
type reflectMap struct {
	t         reflect.Type
	key, elem *plan
}

func (t *reflectMap) hash(w *worker, m unsafe.Pointer, h uint64, depth int) uint64 {
	if t.elem.opaque || depth >= maxDepth {
		w.opaque = true
		return h
	}
	sum := uint64(0)
	key, elem := reflect.New(t.key.t), reflect.New(t.elem.t)
	for i := reflect.NewAt(t.t, unsafe.Pointer(&m)).Elem().MapRange(); i.Next(); {
		key.Elem().SetIterKey(i)
		elem.Elem().SetIterValue(i)
		w.left--
		sum += w.hash(t.elem, elem.UnsafePointer(), w.hash(t.key, key.UnsafePointer(), 0, depth), depth)
	}
	return mix(h, sum, boolSalt)
}

func (t *reflectMap) equal(c *comparer, a, b unsafe.Pointer, depth int) bool {
	x, y := reflect.NewAt(t.t, unsafe.Pointer(&a)).Elem(), reflect.NewAt(t.t, unsafe.Pointer(&b)).Elem()
	if x.Len() != y.Len() {
		return false
	}
	elem, other := reflect.New(t.elem.t), reflect.New(t.elem.t)
	for i := x.MapRange(); i.Next(); {
		found := y.MapIndex(i.Key())
		if !found.IsValid() {
			return false
		}
		elem.Elem().SetIterValue(i)
		other.Elem().Set(found)
		if !c.equal(t.elem, elem.UnsafePointer(), other.UnsafePointer(), depth) {
			return false
		}
	}
	return true
}

// opaqueMap is a map that is left as it is.
type opaqueMap struct{}

func (opaqueMap) hash(w *worker, _ unsafe.Pointer, h uint64, _ int) uint64 {
	w.opaque = true
	return h
}

func (opaqueMap) equal(*comparer, unsafe.Pointer, unsafe.Pointer, int) bool { return false }
