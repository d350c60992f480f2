package guard

import (
	"reflect"
	"unsafe"
)

// cloner copies values that stay on Go's heap, with everything that they refer to, so that
// the program may change the originals. Of a struct, public fields are cloned, and private
// ones copied as they are.
type cloner struct {
	// pointers has the clone of each pointer, so that what is shared stays shared, and
	// rings end.
	pointers map[pointerTo]reflect.Value
}

// pointerTo is a pointer with its type: a struct and its first field have one address.
type pointerTo struct {
	t  reflect.Type
	to unsafe.Pointer
}

func (c *cloner) clone(v reflect.Value, depth int) reflect.Value {
	if depth > maxDepth {
		return v
	}
	switch v.Kind() {
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			own.SetMapIndex(entries.Key(), c.clone(entries.Value(), depth+1))
		}
		return own
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		if reflect.Copy(own, v); v.Type().Elem().Kind() <= reflect.Complex128 {
			return own // numbers refer to nothing, and there may be very many
		}
		for i := range v.Len() {
			own.Index(i).Set(c.clone(v.Index(i), depth+1))
		}
		return own
	case reflect.Interface:
		if v.IsNil() || !isClonable(v.Elem().Type()) {
			return v
		}
		own := reflect.New(v.Type()).Elem()
		own.Set(c.clone(v.Elem(), depth+1))
		return own
	case reflect.Pointer:
		return c.pointer(v, depth)
	case reflect.Struct:
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		for i := range v.NumField() {
			if f := own.Field(i); f.CanSet() && isClonable(f.Type()) {
				f.Set(c.clone(v.Field(i), depth+1))
			}
		}
		if do := prepare[v.Type()]; do != nil && v.CanAddr() { // others cannot be written in place
			do(own.Addr().Interface())
		}
		return own
	}
	return v
}

func (c *cloner) pointer(v reflect.Value, depth int) reflect.Value {
	if v.IsNil() || !isClonable(v.Type()) {
		return v
	}
	at := pointerTo{v.Type(), v.UnsafePointer()}
	if own, ok := c.pointers[at]; ok {
		return own
	}
	own := reflect.New(v.Type().Elem())
	if c.pointers == nil {
		c.pointers = map[pointerTo]reflect.Value{}
	}
	c.pointers[at] = own
	own.Elem().Set(c.clone(v.Elem(), depth+1))
	return own
}

// isPlain reports whether values of a type are made of maps, lists and other plain values,
// as decoded JSON is. What is behind a pointer may be anything.
func isPlain(t reflect.Type) bool { return t.Kind() != reflect.Pointer && !isLazy(t) }

// isClonable reports whether values of a type can be cloned. What has a lock, such as a
// message of protobuf, cannot be copied field by field.
func isClonable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		return t != locationType && !reachesLazy(t)
	}
	return !isLazy(t)
}
