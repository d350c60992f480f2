package shape

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The types that have rules of their own.
var (
	TimeType       = reflect.TypeFor[metav1.Time]()
	QuantityType   = reflect.TypeFor[resource.Quantity]()
	ObjectMetaType = reflect.TypeFor[metav1.ObjectMeta]()
	AnyType        = reflect.TypeFor[any]()
	// UntypedMapType and UntypedListType are what JSON objects and arrays are
	// decoded to without a type. An interface points to the header of the slice
	// that it holds, so the header is shared with the elements.
	UntypedMapType  = reflect.TypeFor[map[string]any]()
	UntypedListType = reflect.TypeFor[*[]any]()
)

// IsScalar says whether values of a type are single values, though some are
// structs. A scalar behind a pointer is never shared by itself: equal ones are
// everywhere, and a write to one would change unrelated objects.
func IsScalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
		reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[resource.Quantity]():
		return true
	}
	k := t.Kind()
	return k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.String
}
