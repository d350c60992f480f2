package apiserver

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// storage says how the objects of a resource are stored: their kind, and their encoding,
// which is protobuf, or JSON for custom resources.
type storage struct {
	kind   schema.GroupVersionKind
	custom bool
	// known is the version whose Go type selectors and columns read; empty if it is that of
	// kind.
	known schema.GroupVersionKind
	// selects knows by which fields custom resources are selected. It changes with their
	// definition.
	selects atomic.Pointer[endpoint]
}

// message is what generated types can do in protobuf.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// freeze makes an Object of a Go value, which gets the version.
func (s *storage) freeze(object runtime.Object, version int64) (*Object, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(nil)
	accessor.SetResourceVersion("")
	if version > 0 {
		accessor.SetResourceVersion(strconv.FormatInt(version, 10))
	}
	e := &Object{
		in: s, version: version,
		key:    joinKey(accessor.GetNamespace(), accessor.GetName()),
		uid:    accessor.GetUID(),
		labels: accessor.GetLabels(),
	}
	e.setFields(s.selectable(object))
	switch object := object.(type) {
	case *unstructured.Unstructured:
		e.raw, err = encodeJSON(object)
	case message:
		e.raw, err = object.Marshal()
	default:
		err = fmt.Errorf("%T can be encoded neither as a custom resource nor as protobuf", object)
	}
	return e, err
}

// selectable returns the fields by which an object can be selected.
func (s *storage) selectable(object runtime.Object) map[string]string {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		return s.selects.Load().selectableCustom(custom)
	}
	known, err := s.asKnown(object)
	if err != nil {
		return nil
	}
	return selectable(known)
}

// knownKind is the kind that selectors and columns read.
func (s *storage) knownKind() schema.GroupVersionKind {
	if s.known.Empty() {
		return s.kind
	}
	return s.known
}

// asKnown returns a built-in object in the version that selectors and columns read.
func (s *storage) asKnown(object runtime.Object) (runtime.Object, error) {
	if s.known.Empty() {
		return object, nil
	}
	return convert(object, s.known)
}

func (s *storage) decode(raw []byte) (runtime.Object, error) {
	if s.custom {
		object := &unstructured.Unstructured{}
		return object, object.UnmarshalJSON(raw)
	}
	object, err := scheme.New(s.kind)
	if err != nil {
		return nil, err
	}
	typed, ok := object.(message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", object)
	}
	if err := typed.Unmarshal(raw); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(s.kind)
	return typed, nil
}
