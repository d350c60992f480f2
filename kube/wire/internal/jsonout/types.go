package jsonout

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ownForm are types of the field that encode themselves to JSON which needs no checks.
var ownForm = map[reflect.Type]encoder{
	reflect.TypeFor[metav1.Time]():        own[metav1.Time],
	reflect.TypeFor[metav1.MicroTime]():   own[metav1.MicroTime],
	reflect.TypeFor[resource.Quantity]():  own[resource.Quantity],
	reflect.TypeFor[intstr.IntOrString](): own[intstr.IntOrString],
	reflect.TypeFor[metav1.FieldsV1]():    fieldSet,
}

func own[T json.Marshaler](w *writer, at unsafe.Pointer) {
	raw, err := (*(*T)(at)).MarshalJSON()
	if err != nil {
		w.stock(*(*T)(at)) // for its error
		return
	}
	w.buf = append(w.buf, raw...)
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// hasMethods says whether encoding/json asks a type, or a pointer to it, to encode itself.
func hasMethods(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) || p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

func makeEncoder(t reflect.Type) encoder {
	if e, ok := ownForm[t]; ok {
		return e
	}
	if t.Kind() == reflect.Pointer {
		return pointerEncoder(t) // its methods are those of the element
	}
	if hasMethods(t) {
		return stockEncoder(t)
	}
	switch t.Kind() {
	case reflect.String:
		return func(w *writer, at unsafe.Pointer) { w.text(*(*string)(at)) }
	case reflect.Bool:
		return func(w *writer, at unsafe.Pointer) { w.buf = strconv.AppendBool(w.buf, *(*bool)(at)) }
	case reflect.Int:
		return integer[int]
	case reflect.Int32:
		return integer[int32]
	case reflect.Int64:
		return integer[int64]
	case reflect.Slice:
		return sliceEncoder(t)
	case reflect.Map:
		return mapEncoder(t)
	case reflect.Struct:
		return structEncoder(t)
	}
	return stockEncoder(t)
}

func integer[T int | int32 | int64](w *writer, at unsafe.Pointer) {
	w.buf = strconv.AppendInt(w.buf, int64(*(*T)(at)), 10)
}

// stockEncoder leaves values of a type to encoding/json. It passes the address, as
// encoding/json has it of everything but the values of maps, which have no encoder with an
// address here.
func stockEncoder(t reflect.Type) encoder {
	return func(w *writer, at unsafe.Pointer) { w.stock(reflect.NewAt(t, at).Interface()) }
}

func pointerEncoder(t reflect.Type) encoder {
	element := encoderOf(t.Elem())
	return func(w *writer, at unsafe.Pointer) {
		if p := *(*unsafe.Pointer)(at); p != nil {
			element(w, p)
			return
		}
		w.null()
	}
}

func (w *writer) null() { w.buf = append(w.buf, "null"...) }

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

func sliceEncoder(t reflect.Type) encoder {
	if t.Elem().Kind() == reflect.Uint8 {
		if hasMethods(t.Elem()) {
			return stockEncoder(t)
		}
		return bytesEncoder
	}
	element, size := encoderOf(t.Elem()), t.Elem().Size()
	return func(w *writer, at unsafe.Pointer) {
		s := (*sliceHeader)(at)
		if s.data == nil {
			w.null()
			return
		}
		w.buf = append(w.buf, '[')
		for i := range s.len {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			element(w, unsafe.Add(s.data, uintptr(i)*size))
		}
		w.buf = append(w.buf, ']')
	}
}

func bytesEncoder(w *writer, at unsafe.Pointer) {
	b := *(*[]byte)(at)
	if b == nil {
		w.null()
		return
	}
	w.buf = append(w.buf, '"')
	w.buf = base64.StdEncoding.AppendEncode(w.buf, b)
	w.buf = append(w.buf, '"')
}
