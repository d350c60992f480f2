package protobuf

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// kind is how a field is decoded.
type kind uint8

const (
	kindUnknown kind = iota
	kindString
	kindBytes
	kindBool
	kindInt32 // and uint32
	kindInt64 // and uint64, int, uint
	kindFloat32
	kindFloat64
	kindMessage
	kindTime
	kindPtrString
	kindPtrBool
	kindPtrInt32
	kindPtrInt64
	kindPtrFloat32
	kindPtrFloat64
	kindPtrMessage
	kindPtrTime
	kindStrings
	kindBytesList
	kindBools
	kindInt32s
	kindInt64s
	kindMessages
	kindTextMap
	kindBytesMap
	kindQuantityMap
	kindMessageMap

	// kindRuns is the first kind that is made of several fields in a row.
	kindRuns = kindStrings
)

// field is how one field of a message is decoded. It is kept small: a pod has
// some two hundred of them, and all are visited for each pod.
type field struct {
	kind     kind
	wireType uint8
	tagSize  uint8
	// private keeps the field's map or list, or what it points to, from being shared.
	private bool
	// identity says how the text identifies objects.
	identity identity
	// reusable says that the message may be taken over from an object's last state,
	// stable that it usually is.
	reusable, stable bool

	tag       uint32
	offset    uint32
	elemSize  uint32 // of a slice's elements, a map's values, what a pointer points to
	statIndex int32  // the index of this field's statistics
	salt      uint64 // of the keys of parts
	node      atomic.Pointer[node]
	*fieldType
}

// identity says which part of an object's identity a field holds.
type identity uint8

const (
	isNone identity = iota
	isName
	isNamespace
	isUID
)

// fieldType is the data of a field that is needed less often.
type fieldType struct {
	typ     reflect.Type // of the field
	elem    reflect.Type
	message reflect.Type               // of the messages in it, nil if there are none
	make    func(n int) unsafe.Pointer // nil for most types
	toPart  atomic.Pointer[shape.Ref]
	arrays  *arrayTypes
	parent  *node
	name    string // in JSON
}

// formatSalt keeps parts that were made of protobuf from being mistaken for parts
// that were made of the same bytes in another format.
const formatSalt = 0x70726f746f627566

func (f *field) init(parent *node, number int, sf reflect.StructField) {
	f.fieldType = &fieldType{typ: sf.Type, parent: parent, name: shape.JSONName(sf)}
	f.offset = uint32(sf.Offset)
	f.classify(sf.Type)
	f.wireType = f.kind.wireType()
	if f.elem != nil {
		f.elemSize = uint32(f.elem.Size())
		f.make, f.arrays = makers[f.elem], arraysOf(f.elem)
	}
	f.salt = pool.TypeSalt(f.typ) ^ formatSalt
	f.statIndex = f.parent.plan.fieldCount.Add(1) - 1
	tag, size := encodeTag(number, f.wireType)
	if f.tag, f.tagSize = tag, uint8(size); size == 0 {
		f.kind = kindUnknown
	}
}

var unmarshalerType = reflect.TypeFor[unmarshaler]()

// isMessage says whether a type is a struct that can be decoded.
func isMessage(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(unmarshalerType)
}

// classify finds a field's kind by its Go type, as the generator does: the wire
// type in the tag is not always right (floats have "bytes").
func (f *field) classify(t reflect.Type) {
	if t == shape.TimeType {
		f.kind = kindTime
		return
	}
	if isMessage(t) {
		f.kind, f.message = kindMessage, t
		return
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return // a list or map that is a message of its own, nil or not: the parent's Unmarshal decodes it
	}
	switch t.Kind() {
	case reflect.Slice:
		f.classifySlice(t.Elem())
	case reflect.Map:
		f.classifyMap(t)
	case reflect.Pointer:
		f.classifyPointer(t.Elem())
	default:
		f.kind = scalarKinds[t.Kind()]
	}
}

var scalarKinds = map[reflect.Kind]kind{
	reflect.String: kindString, reflect.Bool: kindBool,
	reflect.Int32: kindInt32, reflect.Uint32: kindInt32,
	reflect.Int64: kindInt64, reflect.Uint64: kindInt64,
	reflect.Float32: kindFloat32, reflect.Float64: kindFloat64,
}

var pointerKinds = map[kind]kind{
	kindString: kindPtrString, kindBool: kindPtrBool, kindInt32: kindPtrInt32, kindInt64: kindPtrInt64,
	kindFloat32: kindPtrFloat32, kindFloat64: kindPtrFloat64,
}

var sliceKinds = map[kind]kind{kindString: kindStrings, kindBool: kindBools, kindInt32: kindInt32s, kindInt64: kindInt64s}

var mapKinds = map[kind]kind{kindString: kindTextMap}

// plain says that a type has no Unmarshal: only such numbers and texts are fields
// of their own.
func plain(t reflect.Type) bool {
	return !reflect.PointerTo(t).Implements(unmarshalerType)
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && plain(t)
}

func (f *field) classifySlice(elem reflect.Type) {
	f.elem = elem
	switch {
	case elem.Kind() == reflect.Uint8:
		f.kind = kindBytes
	case isMessage(elem):
		f.kind, f.message = kindMessages, elem
	case isBytes(elem):
		f.kind = kindBytesList
	case plain(elem):
		f.kind = sliceKinds[scalarKinds[elem.Kind()]]
	}
}

func (f *field) classifyPointer(elem reflect.Type) {
	f.elem = elem
	switch {
	case elem == shape.TimeType:
		f.kind = kindPtrTime
	case isMessage(elem):
		f.kind, f.message = kindPtrMessage, elem
		f.private = shape.IsScalar(elem)
	case plain(elem):
		f.kind = pointerKinds[scalarKinds[elem.Kind()]]
	}
}

func (f *field) classifyMap(t reflect.Type) {
	f.elem = t.Elem()
	switch {
	case t.Key().Kind() != reflect.String:
	case f.elem == shape.QuantityType:
		f.kind, f.message = kindQuantityMap, f.elem
	case isMessage(f.elem):
		f.kind, f.message = kindMessageMap, f.elem
	case isBytes(f.elem):
		f.kind = kindBytesMap
	case plain(f.elem):
		f.kind = mapKinds[scalarKinds[f.elem.Kind()]]
	}
}

func (k kind) wireType() uint8 {
	switch k {
	case kindBool, kindInt32, kindInt64, kindPtrBool, kindPtrInt32, kindPtrInt64, kindBools, kindInt32s, kindInt64s:
		return wireVarint
	case kindFloat64, kindPtrFloat64:
		return wireFixed64
	case kindFloat32, kindPtrFloat32:
		return wireFixed32
	}
	return wireBytes
}

// ref leads to the parts of the field.
func (f *field) ref() *shape.Ref {
	r := f.toPart.Load()
	if r == nil {
		r = shape.RefTo(f.typ)
		f.toPart.Store(r)
	}
	return r
}
