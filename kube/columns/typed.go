package columns

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// typedFor returns the conversion of unstructured objects for computed columns; nil if
// none is needed, or possible.
//
// Only the fields that columns read are converted: a tenth of a real pod.
func typedFor(resource schema.GroupVersionResource, object reflect.Type) func(*unstructured.Unstructured) metav1.Object {
	if object != unstructuredType || resource.Version != "v1" {
		return nil
	}
	switch resource.GroupResource() {
	case core("pods"):
		return func(u *unstructured.Unstructured) metav1.Object { return convert(u, &corev1.Pod{}, podFields) }
	case core("nodes"):
		return func(u *unstructured.Unstructured) metav1.Object { return convert(u, &corev1.Node{}, nodeFields) }
	}
	return nil
}

// fields holds the fields to convert; nil means everything below.
type fields map[string]fields

var (
	containerFields = fields{"image": nil, "resources": nil, "restartPolicy": nil}
	statusFields    = fields{"ready": nil, "restartCount": nil, "state": nil}
	podFields       = fields{
		"metadata": {"deletionTimestamp": nil},
		"spec":     {"containers": containerFields, "initContainers": containerFields, "overhead": nil},
		"status":   {"phase": nil, "reason": nil, "conditions": {"type": nil, "status": nil}, "containerStatuses": statusFields, "initContainerStatuses": statusFields},
	}
	nodeFields = fields{
		"metadata": {"labels": nil},
		"status":   {"conditions": {"type": nil, "status": nil}, "addresses": nil, "capacity": nil, "allocatable": nil},
	}
)

// pick copies fields of an object, and of each element of a list.
func (f fields) pick(v any) any {
	if f == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		picked := make(map[string]any, len(f))
		for name, inner := range f {
			if value, ok := v[name]; ok {
				picked[name] = inner.pick(value)
			}
		}
		return picked
	case []any:
		picked := make([]any, len(v))
		for i := range v {
			picked[i] = f.pick(v[i])
		}
		return picked
	}
	return v
}

// convert returns a typed object. An object that does not fit has no computed columns.
func convert[T metav1.Object](u *unstructured.Unstructured, typed T, f fields) metav1.Object {
	picked, _ := f.pick(u.Object).(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(picked, typed) != nil {
		return u
	}
	return typed
}
