package shape

import (
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// IsLazy says whether a quantity has no text yet, as one that is not written in the
// canonical form. Such a quantity stores its text at the first call of String. If
// two objects shared it, reading them in two goroutines would be a data race. So no
// part that leads to a lazy quantity is shared.
//
// The text is a private field. Where [findText] does not find it, every quantity counts
// as lazy: that costs memory, and nothing else.
func IsLazy(quantity unsafe.Pointer) bool {
	return !hasText || *(*string)(unsafe.Add(quantity, textOffset)) == ""
}

var textOffset, hasText = findText(QuantityType, func() (quantity unsafe.Pointer, print func() string) {
	q := resource.NewQuantity(1500, resource.DecimalSI)
	return unsafe.Pointer(q), q.String
})

// findText returns the offset of the private field that holds a quantity's text. It
// believes neither name nor type of the field, and tries: the field is empty in a
// quantity that was not printed yet, and has the text afterwards.
func findText(t reflect.Type, example func() (quantity unsafe.Pointer, print func() string)) (offset uintptr, found bool) {
	field, ok := t.FieldByName("s")
	if !ok || field.Type.Kind() != reflect.String {
		return 0, false
	}
	quantity, print := example()
	text := (*string)(unsafe.Add(quantity, field.Offset))
	if *text != "" {
		return 0, false
	}
	printed := print()
	return field.Offset, printed != "" && printed == *text
}

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

// HasLock says whether values of type t contain, or lead to, a struct with a lock or an
// atomic value in it. The methods of such a struct may write to it although they only read:
// a message of protobuf stores its size when it is encoded. So no part that leads to one is
// shared: to use it would look like a stray write.
func HasLock(t reflect.Type) bool { return hasLock(t, map[reflect.Type]bool{}) }

func hasLock(t reflect.Type, within map[reflect.Type]bool) bool {
	if within[t] {
		return false
	}
	within[t] = true
	switch t.Kind() {
	case reflect.Map, reflect.Pointer, reflect.Slice, reflect.Array:
		return hasLock(t.Elem(), within)
	case reflect.Struct:
		if path := t.PkgPath(); path == "sync" || strings.HasPrefix(path, "sync/") {
			return true
		}
		for i := range t.NumField() {
			if hasLock(t.Field(i).Type, within) {
				return true
			}
		}
	}
	return false
}
