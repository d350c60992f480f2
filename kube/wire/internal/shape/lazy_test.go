package shape

import (
	"reflect"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The quantity of the present apimachinery keeps its text where it is expected.
func TestQuantityHasText(t *testing.T) {
	if !hasText {
		t.Fatal("the text of a quantity is not found: no part with a quantity is shared")
	}
	q := resource.NewQuantity(7, resource.DecimalSI)
	if !IsLazy(unsafe.Pointer(q)) {
		t.Error("a quantity that was not printed counts as printed")
	}
	_ = q.String()
	if IsLazy(unsafe.Pointer(q)) {
		t.Error("a quantity that was printed counts as lazy")
	}
}

// A quantity of another shape is not believed.
func TestTextOfOtherQuantitiesIsNotFound(t *testing.T) {
	type withoutText struct{ i int64 }
	type otherType struct{ s []byte }
	type otherMeaning struct{ s, text string }
	type filled struct{ s string }
	_, _ = withoutText{}.i, otherType{}.s
	for name, c := range map[string]struct {
		t       reflect.Type
		example func() (unsafe.Pointer, func() string)
	}{
		"no such field": {reflect.TypeFor[withoutText](), nil},
		"another type":  {reflect.TypeFor[otherType](), nil},
		"another meaning": {reflect.TypeFor[otherMeaning](), func() (unsafe.Pointer, func() string) {
			q := &otherMeaning{}
			return unsafe.Pointer(q), func() string { q.text = "1500"; return q.text }
		}},
		"filled before it is printed": {reflect.TypeFor[filled](), func() (unsafe.Pointer, func() string) {
			q := &filled{s: "1500"}
			return unsafe.Pointer(q), func() string { return q.s }
		}},
	} {
		if _, found := findText(c.t, c.example); found {
			t.Errorf("%s: found", name)
		}
	}
}
