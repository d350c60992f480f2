package cache

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// expectedType is what the objects of a collection must be, as far as it is known. They
// are checked where they come in and not later, because a transform may make
// anything of them.
type expectedType struct {
	goType reflect.Type
	gvk    *schema.GroupVersionKind
}

// expectedTypeOf wants objects like the example that informers and reflectors are
// given.
func expectedTypeOf(example any) expectedType {
	return expectedType{reflect.TypeOf(example), expectedGVK(example)}
}

// foreign says why an object does not belong into this collection.
func (w expectedType) foreign(object any) error {
	if isNil(object) {
		return errors.New("the object is nil")
	}
	if got := reflect.TypeOf(object); w.goType != nil && got != w.goType {
		if status, ok := object.(*metav1.Status); ok {
			return fmt.Errorf("a Status instead of an object: %s", status.Message)
		}
		return fmt.Errorf("the object is a %v, expected %v", got, w.goType)
	}
	kinded, ok := object.(runtime.Object)
	if !ok {
		return nil
	}
	gvk := kinded.GetObjectKind().GroupVersionKind()
	if w.gvk != nil && gvk != *w.gvk {
		return fmt.Errorf("the object is of kind %v, expected %v", gvk, *w.gvk)
	}
	if _, ok := object.(*unstructured.Unstructured); ok && isTable(gvk) {
		return fmt.Errorf("unsupported kind %v; ask for objects, not for a table", gvk)
	}
	return nil
}

func isTable(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName && (gvk.Version == "v1" || gvk.Version == "v1beta1")
}

// expectedGVK is the kind of an unstructured example.
func expectedGVK(example any) *schema.GroupVersionKind {
	if u, ok := example.(*unstructured.Unstructured); ok && u != nil {
		if gvk := u.GroupVersionKind(); !gvk.Empty() {
			return &gvk
		}
	}
	return nil
}

// describeType is how errors and logs call what a reflector reflects.
func describeType(example any) string {
	if gvk := expectedGVK(example); gvk != nil {
		return gvk.String()
	}
	if example == nil {
		return "<unspecified>"
	}
	return reflect.TypeOf(example).String()
}
