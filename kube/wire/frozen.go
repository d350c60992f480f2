package wire

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tarnproject/tarn/internal/guard"
)

// A Quantity keeps its text when it is first printed. In guard mode it must have the text
// before it becomes read-only.
func init() {
	guard.Prepare(reflect.TypeFor[resource.Quantity](), func(q any) { _ = q.(*resource.Quantity).String() })
}
