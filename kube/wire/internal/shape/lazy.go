package shape

import (
	"reflect"
	"unsafe"
)

// IsLazy says whether a quantity has no text yet, as one that is not written in the
// canonical form. Such a quantity stores its text at the first call of String. If
// two objects shared it, reading them in two goroutines would be a data race. So no
// part that leads to a lazy quantity is shared.
//
// The text is a private field. In a version of the type without it, every quantity
// counts as lazy: that costs memory, and nothing else.
func IsLazy(quantity unsafe.Pointer) bool {
	return !hasText || *(*string)(unsafe.Add(quantity, textOffset)) == ""
}

var textOffset, hasText = func() (uintptr, bool) {
	field, ok := QuantityType.FieldByName("s")
	return field.Offset, ok && field.Type.Kind() == reflect.String
}()

// Contains says whether values of type t can contain values of type to, other than
// in maps, whose values nobody can write to in place.
func Contains(t, to reflect.Type, within map[reflect.Type]bool) bool {
	if t == to || within[t] {
		return t == to
	}
	within[t] = true
	switch t.Kind() {
	case reflect.Map:
		return t.Elem() != to && Contains(t.Elem(), to, within)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return Contains(t.Elem(), to, within)
	case reflect.Struct:
		for i := range t.NumField() {
			if Contains(t.Field(i).Type, to, within) {
				return true
			}
		}
	}
	return false
}
