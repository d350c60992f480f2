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
	w.buf, w.err = buf, nil
	w.object(object)
	buf, err := w.buf, w.err
	w.buf = nil
	writers.Put(w)
	return buf, err
}

// writer is one encoding on its way. Its scratch space is used again by the next one.
type writer struct {
	buf []byte
	err error
	// pairs are the members of the maps that are being written, texts those of maps of
	// strings. Each map has its part at the end.
	pairs []pair
	texts []textPair
	depth int
}

var writers = sync.Pool{New: func() any { return &writer{} }}

func (w *writer) object(object any) {
	if u, ok := object.(*unstructured.Unstructured); ok && u != nil {
		w.value(u.Object)
		return
	}
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		w.stock(object)
		return
	}
	encoderOf(v.Type().Elem())(w, v.UnsafePointer())
}

// stock leaves a value to encoding/json.
func (w *writer) stock(value any) {
	raw, err := json.Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.buf = append(w.buf, raw...)
}

// encoder appends the value at an address.
type encoder func(w *writer, at unsafe.Pointer)

var encoders sync.Map // of encoder by reflect.Type

// encoderOf finds the encoder of a type, or makes it. The encoder of a type within itself is
// looked up when it is needed.
func encoderOf(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	var once sync.Once
	var made encoder
	encoders.Store(t, encoder(func(w *writer, at unsafe.Pointer) {
		once.Do(func() { made = makeEncoder(t) })
		made(w, at)
	}))
	e := makeEncoder(t)
	encoders.Store(t, e)
	return e
}
