package jsonout

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ownForm are types of the field that encode themselves to JSON which needs no checks.
var ownForm = map[reflect.Type]encoder{
	reflect.TypeFor[metav1.Time]():        instant,
	reflect.TypeFor[metav1.MicroTime]():   own[metav1.MicroTime],
	reflect.TypeFor[resource.Quantity]():  own[resource.Quantity],
	reflect.TypeFor[intstr.IntOrString](): intOrText,
	reflect.TypeFor[metav1.FieldsV1]():    fieldSet,
}

func own[T json.Marshaler](w *writer, buf []byte, at unsafe.Pointer) []byte {
	raw, err := (*(*T)(at)).MarshalJSON()
	if err != nil {
		return w.stock(buf, *(*T)(at)) // for its error
	}
	return append(buf, raw...)
}

// instant writes a time without an allocation.
func instant(_ *writer, buf []byte, at unsafe.Pointer) []byte {
	t := (*metav1.Time)(at)
	if t.IsZero() {
		return null(buf)
	}
	buf = append(buf, '"')
	buf = t.UTC().AppendFormat(buf, time.RFC3339)
	return append(buf, '"')
}

func intOrText(w *writer, buf []byte, at unsafe.Pointer) []byte {
	switch v := (*intstr.IntOrString)(at); v.Type {
	case intstr.Int:
		return strconv.AppendInt(buf, int64(v.IntVal), 10)
	case intstr.String:
		return appendText(buf, v.StrVal)
	default:
		return w.stock(buf, *v) // for its error
	}
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
		return func(_ *writer, buf []byte, at unsafe.Pointer) []byte { return appendText(buf, *(*string)(at)) }
	case reflect.Bool:
		return func(_ *writer, buf []byte, at unsafe.Pointer) []byte { return strconv.AppendBool(buf, *(*bool)(at)) }
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

func integer[T int | int32 | int64](_ *writer, buf []byte, at unsafe.Pointer) []byte {
	return strconv.AppendInt(buf, int64(*(*T)(at)), 10)
}

// stockEncoder leaves values of a type to encoding/json. It passes the address, as
// encoding/json has it of everything but the values of maps, which have no encoder with an
// address here.
func stockEncoder(t reflect.Type) encoder {
	return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
		return w.stock(buf, reflect.NewAt(t, at).Interface())
	}
}

func pointerEncoder(t reflect.Type) encoder {
	element, k := encoderOf(t.Elem()), newKind()
	if t.Elem().Kind() != reflect.Struct {
		return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
			if p := *(*unsafe.Pointer)(at); p != nil {
				return element(w, buf, p)
			}
			return null(buf)
		}
	}
	return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
		p := *(*unsafe.Pointer)(at)
		if p == nil {
			return null(buf)
		}
		begin := len(buf)
		buf, known := w.known(buf, p, 0, k)
		if known {
			return buf
		}
		buf = element(w, buf, p)
		w.learn(buf[begin:], p, 0, k)
		return buf
	}
}

func null(buf []byte) []byte { return append(buf, "null"...) }

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
	element, size, k := encoderOf(t.Elem()), t.Elem().Size(), newKind()
	return func(w *writer, buf []byte, at unsafe.Pointer) []byte {
		s := (*sliceHeader)(at)
		if s.data == nil {
			return null(buf)
		}
		begin := len(buf)
		buf, known := w.known(buf, s.data, s.len, k)
		if known {
			return buf
		}
		buf = append(buf, '[')
		for i := range s.len {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = element(w, buf, unsafe.Add(s.data, uintptr(i)*size))
		}
		buf = append(buf, ']')
		w.learn(buf[begin:], s.data, s.len, k)
		return buf
	}
}

func bytesEncoder(_ *writer, buf []byte, at unsafe.Pointer) []byte {
	b := *(*[]byte)(at)
	if b == nil {
		return null(buf)
	}
	buf = append(buf, '"')
	buf = base64.StdEncoding.AppendEncode(buf, b)
	return append(buf, '"')
}
