package jsonout

import (
	"encoding/json"
	"reflect"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Append appends the JSON of an object, which is a pointer to a struct, to buf. It has the
// result of json.Marshal, and its errors.
func Append(buf []byte, object any) ([]byte, error) {
	w := writers.Get().(*writer)
	buf, err := w.append(buf, object)
	writers.Put(w)
	return buf, err
}

// writer is one encoding on its way. Its scratch space is used again by the next one.
type writer struct {
	err error
	// pairs are the members of the maps that are being written, texts those of maps of
	// strings. Each map has its part at the end.
	pairs []pair
	texts []textPair
	depth int
	// parts are what is known already; nil if nothing is remembered.
	parts *parts
}

var writers = sync.Pool{New: func() any { return &writer{} }}

func (w *writer) append(buf []byte, object any) ([]byte, error) {
	w.err = nil
	buf = w.object(buf, object)
	return buf, w.err
}

func (w *writer) object(buf []byte, object any) []byte {
	if u, ok := object.(*unstructured.Unstructured); ok && u != nil {
		return w.value(buf, u.Object)
	}
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return w.stock(buf, object)
	}
	return encoderOf(v.Type().Elem())(w, buf, v.UnsafePointer())
}

// stock leaves a value to encoding/json.
func (w *writer) stock(buf []byte, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	return append(buf, raw...)
}

// encoder appends the value at an address to buf. The buffer is passed on, and not kept in
// the writer, so that it stays in registers.
type encoder func(w *writer, buf []byte, at unsafe.Pointer) []byte

var encoders sync.Map // of encoder by reflect.Type

// encoderOf finds the encoder of a type, or makes it. The encoder of a type within itself is
// looked up when it is needed.
func encoderOf(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	var once sync.Once
	var made encoder
	encoders.Store(t, encoder(func(w *writer, buf []byte, at unsafe.Pointer) []byte {
		once.Do(func() { made = makeEncoder(t) })
		return made(w, buf, at)
	}))
	e := makeEncoder(t)
	encoders.Store(t, e)
	return e
}
