package fieldpath

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"time"
	"unsafe"
)

// leaf is how a value is read where a path ends.
type leaf uint8

const (
	leafString leaf = iota
	leafBool
	leafInt
	leafInt8
	leafInt16
	leafInt32
	leafInt64
	leafUint
	leafUint8
	leafUint16
	leafUint32
	leafUint64
	leafFloat32
	leafFloat64
	leafTime
	leafQuantity
	leafMarshaler
	leafBytes
	leafObject
	leafMap
	leafList
)

var byKind = map[reflect.Kind]leaf{
	reflect.String: leafString, reflect.Bool: leafBool,
	reflect.Int: leafInt, reflect.Int8: leafInt8, reflect.Int16: leafInt16, reflect.Int32: leafInt32, reflect.Int64: leafInt64,
	reflect.Uint: leafUint, reflect.Uint8: leafUint8, reflect.Uint16: leafUint16, reflect.Uint32: leafUint32, reflect.Uint64: leafUint64, reflect.Uintptr: leafUint,
	reflect.Float32: leafFloat32, reflect.Float64: leafFloat64,
	reflect.Struct: leafObject, reflect.Map: leafMap, reflect.Slice: leafList, reflect.Array: leafObject,
}

// quantity is a method that only resource.Quantity has.
type quantity interface{ AsApproximateFloat64() float64 }

var (
	timeType      = reflect.TypeFor[time.Time]()
	quantityType  = reflect.TypeFor[quantity]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
)

// leafOf says how to read a value of this type; ok is false if it cannot be read.
func leafOf(t reflect.Type) (l leaf, ok bool) {
	switch {
	case isTime(t):
		return leafTime, true
	case reflect.PointerTo(t).Implements(quantityType):
		return leafQuantity, true
	case reflect.PointerTo(t).Implements(marshalerType):
		return leafMarshaler, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return leafBytes, true
	}
	l, ok = byKind[t.Kind()]
	return l, ok
}

// isTime recognises time.Time, and a struct that contains nothing else, such as
// metav1.Time and metav1.MicroTime.
func isTime(t reflect.Type) bool {
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous {
		t = t.Field(0).Type
	}
	return t == timeType
}

// value reads the value at p.
func (g *program) value(p unsafe.Pointer) Value {
	v := g.present(p)
	if g.omit && v.empty() {
		return Value{}
	}
	return v
}

// empty says whether omitempty leaves the value out.
func (v Value) empty() bool {
	switch v.kind {
	case String:
		return v.text == ""
	case Bool, Int:
		return v.bits == 0
	}
	return false
}

func (g *program) present(p unsafe.Pointer) Value {
	switch g.read {
	case leafString:
		return StringValue(*(*string)(p))
	case leafBool:
		return BoolValue(*(*bool)(p))
	case leafInt:
		return IntValue(int64(*(*int)(p)))
	case leafInt8:
		return IntValue(int64(*(*int8)(p)))
	case leafInt16:
		return IntValue(int64(*(*int16)(p)))
	case leafInt32:
		return IntValue(int64(*(*int32)(p)))
	case leafInt64:
		return IntValue(*(*int64)(p))
	case leafUint:
		return uintValue(uint64(*(*uint)(p)))
	case leafUint8:
		return IntValue(int64(*(*uint8)(p)))
	case leafUint16:
		return IntValue(int64(*(*uint16)(p)))
	case leafUint32:
		return IntValue(int64(*(*uint32)(p)))
	case leafUint64:
		return uintValue(*(*uint64)(p))
	case leafFloat32:
		return FloatValue(float64(*(*float32)(p)))
	case leafFloat64:
		return FloatValue(*(*float64)(p))
	case leafTime:
		return TimeValue(*(*time.Time)(p))
	}
	return g.uncommon(p)
}

// uncommon reads values whose reading may allocate.
func (g *program) uncommon(p unsafe.Pointer) Value {
	switch g.read {
	case leafQuantity:
		return FloatValue(reflect.NewAt(g.last, p).Interface().(quantity).AsApproximateFloat64())
	case leafMarshaler:
		return marshaled(reflect.NewAt(g.last, p).Interface())
	case leafBytes:
		if b := *(*[]byte)(p); b != nil {
			return StringValue(base64.StdEncoding.EncodeToString(b))
		}
		return Value{}
	case leafMap:
		return composite(reflect.NewAt(g.last, p).Elem(), anObject, g.omit)
	case leafList:
		return composite(reflect.NewAt(g.last, p).Elem(), aList, g.omit)
	}
	if g.last.Kind() == reflect.Array {
		return aList
	}
	return anObject
}

// composite is v's Value: nil is null, and empty is missing if JSON leaves it out.
func composite(v reflect.Value, there Value, omitEmpty bool) Value {
	if v.IsNil() || omitEmpty && v.Len() == 0 {
		return Value{}
	}
	return there
}

// marshaled reads a value that marshals itself, such as an intstr.IntOrString.
func marshaled(x any) Value {
	text, err := json.Marshal(x)
	if err != nil {
		return Value{}
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return Value{}
	}
	return dynamicLeaf(plain)
}

func uintValue(n uint64) Value {
	if n > 1<<63-1 {
		return FloatValue(float64(n))
	}
	return IntValue(int64(n))
}
