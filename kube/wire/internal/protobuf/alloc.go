package protobuf

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newArray allocates n elements of a slice, or one for a pointer.
//
// Why not always by reflect.MakeSlice: it allocates the slice's header too, which
// for short lists is as much work as the elements.
func (f *field) newArray(n int) unsafe.Pointer {
	switch {
	case f.make != nil:
		return f.make(n)
	case n == 1:
		return reflect.New(f.elem).UnsafePointer()
	case n < len(f.arrays):
		return reflect.New(f.arrays.of(f.elem, n)).UnsafePointer()
	}
	return reflect.MakeSlice(reflect.SliceOf(f.elem), n, n).UnsafePointer()
}

// arrayTypes are the types of short arrays of one type. They are the same for all fields
// of all decoders.
type arrayTypes [5]atomic.Pointer[reflect.Type]

var arrays sync.Map // of *arrayTypes by the reflect.Type of their elements

func arraysOf(elem reflect.Type) *arrayTypes {
	if known, ok := arrays.Load(elem); ok {
		return known.(*arrayTypes)
	}
	known, _ := arrays.LoadOrStore(elem, new(arrayTypes))
	return known.(*arrayTypes)
}

func (a *arrayTypes) of(elem reflect.Type, n int) reflect.Type {
	t := a[n].Load()
	if t == nil {
		array := reflect.ArrayOf(n, elem)
		t = &array
		a[n].Store(t)
	}
	return *t
}

// makers allocate the types that pods are made of without reflection, which takes a
// fifth of the time of an allocation.
var makers = map[reflect.Type]func(n int) unsafe.Pointer{}

func init() {
	maker[string]()
	maker[corev1.Container]()
	maker[corev1.ContainerPort]()
	maker[corev1.ContainerStateRunning]()
	maker[corev1.ContainerStateTerminated]()
	maker[corev1.ContainerStatus]()
	maker[corev1.EnvVar]()
	maker[corev1.EnvVarSource]()
	maker[corev1.HTTPGetAction]()
	maker[corev1.ObjectFieldSelector]()
	maker[corev1.PodCondition]()
	maker[corev1.PodIP]()
	maker[corev1.Probe]()
	maker[corev1.SecretKeySelector]()
	maker[corev1.SecurityContext]()
	maker[corev1.Volume]()
	maker[corev1.VolumeMount]()
	maker[metav1.FieldsV1]()
	maker[metav1.ManagedFieldsEntry]()
	maker[metav1.OwnerReference]()
}

func maker[T any]() {
	makers[reflect.TypeFor[T]()] = func(n int) unsafe.Pointer {
		if n == 1 {
			return unsafe.Pointer(new(T))
		}
		return unsafe.Pointer(unsafe.SliceData(make([]T, n)))
	}
}
