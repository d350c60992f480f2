package json

import (
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Decoder decodes one type's objects from JSON.
//
// It reads the bytes once, by a plan compiled for the type, and writes each value where
// it belongs; there are no tokens in between. It knows only what well-formed servers
// send. At anything else (a syntax error, a name given twice, a number that does not fit,
// a byte that is not UTF-8) it stops, and the stock decoder decodes the object.
type Decoder struct {
	objectType reflect.Type // the struct type
	opts       pool.Options
	once       sync.Once
	plan       *plan
	readers    sync.Pool // of *reader
}

// New returns a decoder of structs of type t.
func New(t reflect.Type, opts pool.Options) *Decoder {
	return &Decoder{objectType: t, opts: opts}
}

var unstructuredType = reflect.TypeFor[unstructured.Unstructured]()

// compile makes the plan when the first object arrives.
func (d *Decoder) compile() {
	c, t := &compiler{plans: map[reflect.Type]*plan{}}, d.objectType
	if t == unstructuredType {
		t = shape.UntypedMapType
	}
	c.mu.Lock()
	d.plan = c.plan(t, scopeOf(d.opts))
	c.mu.Unlock()
	d.readers.New = func() any {
		s := &reader{}
		s.texts.seed = maphash.MakeSeed()
		s.pool = d.opts.Pool
		return s
	}
}

// Decode decodes an object.
func (d *Decoder) Decode(raw []byte) (any, error) {
	if object, ok := d.fast(raw); ok {
		return object, nil
	}
	return d.stock(raw)
}

// fast decodes an object if it is regular.
func (d *Decoder) fast(raw []byte) (object any, ok bool) {
	d.once.Do(d.compile)
	memory := reflect.New(d.objectType)
	s := d.readers.Get().(*reader)
	ok = s.whole(d.plan, memory.UnsafePointer(), raw)
	d.readers.Put(s)
	return memory.Interface(), ok
}

// whole decodes raw, which must be one object and nothing else.
func (s *reader) whole(p *plan, dst unsafe.Pointer, raw []byte) bool {
	i := skipSpace(raw, 0)
	if i == irregular || raw[i] != '{' {
		return false
	}
	s.data, s.depth = raw, 0
	s.begin(len(raw))
	s.texts.current = ownArena
	i = s.decodeNew(p, dst, i, 0)
	s.data = nil
	return i != irregular && skipSpace(raw, i) == irregular
}

// stock decodes an object with the decoder that client-go uses.
func (d *Decoder) stock(raw []byte) (any, error) {
	object := reflect.New(d.objectType).Interface()
	var target any = object
	u, untyped := object.(*unstructured.Unstructured)
	if untyped {
		target = &u.Object
	}
	if err := utiljson.Unmarshal(raw, target); err != nil {
		return nil, err
	}
	for _, path := range d.opts.Drop {
		if untyped {
			dropMember(u.Object, path)
		} else {
			shape.Drop(reflect.ValueOf(object), path)
		}
	}
	return object, nil
}

// dropMember takes a member out of an unstructured value that was decoded with it.
func dropMember(x any, path string) {
	switch x := x.(type) {
	case []any:
		for _, element := range x {
			dropMember(element, path)
		}
	case map[string]any:
		name, rest, more := strings.Cut(path, ".")
		if more {
			dropMember(x[name], rest)
		} else {
			delete(x, name)
		}
	}
}
