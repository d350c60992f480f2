package kube

import (
	"fmt"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// codec decodes the items of a list or the events of a stream, and checks that they
// are of the collection's kind. Any number of goroutines may use it at a time.
//
// Typed objects and metadata have no apiVersion and kind, as with client-go's typed
// clients: the type implies them. Unstructured objects always have both.
type codec[T any] struct {
	wire *wire.Decoder
	// encoding makes the objects instead, if it is set.
	encoding *Encoding[T]
	kinds    kindFilter
	// stamp is set on typed objects and metadata; usually empty.
	stamp metav1.TypeMeta
	// itemKinds leaves the items of lists the kinds that a server wrote, as a REST client does.
	itemKinds bool
}

// stateInfo is what is known of a state before it is decoded: the event, and where
// the object's earlier states are held, if they are.
type stateInfo struct {
	event wire.Event
	held  wire.Held
	// item says that it is an item of a list.
	item bool
}

// object decodes one state of an object. In protobuf it is the bare message, of
// kind t; in JSON the object carries its kind, and t is ignored.
func (c *codec[T]) object(m media, raw []byte, t runtime.TypeMeta, l stateInfo) (object T, silent bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			// Keep only the top of the stack: there may be many such objects.
			stack := debug.Stack()
			err = fmt.Errorf("%w: the decoder panicked: %v\n%s", tarn.ErrUndecodable, v, stack[:min(len(stack), 2<<10)])
		}
	}()
	if c.encoding != nil {
		return c.encoding.object(m, raw, t, &c.kinds)
	}
	var decoded any
	if m == mediaJSON {
		decoded, err = c.wire.JSON(raw)
	} else {
		decoded, err = c.wire.ProtobufAt(l.event, raw, l.held)
	}
	if err != nil {
		if m == mediaJSON {
			t = excerptOf(m, raw).TypeMeta
		}
		if foreign := c.kinds.foreign(t); foreign != nil {
			return object, false, foreign
		}
		return object, false, fmt.Errorf("%w: %w", tarn.ErrUndecodable, err)
	}
	if m == mediaJSON {
		t = typeOf(decoded)
	}
	if err := c.kinds.foreign(t); err != nil {
		return object, false, err
	}
	if !l.item || !c.itemKinds {
		mark(decoded, c.stamp)
	}
	object, ok := decoded.(T)
	if !ok {
		return object, false, fmt.Errorf("the decoder returned a %T", decoded)
	}
	return object, t.Kind == "" || t.APIVersion == "", nil
}

// typeOf returns the apiVersion and kind in an object.
func typeOf(object any) (t runtime.TypeMeta) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		t.APIVersion, _ = o.Object["apiVersion"].(string)
		t.Kind, _ = o.Object["kind"].(string)
	case runtime.Object:
		if own, ok := o.GetObjectKind().(*metav1.TypeMeta); ok {
			return runtime.TypeMeta{APIVersion: own.APIVersion, Kind: own.Kind}
		}
		t.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	}
	return t
}

// mark sets apiVersion and kind of a typed object.
func mark(object any, stamp metav1.TypeMeta) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
	case runtime.Object:
		if own, ok := o.GetObjectKind().(*metav1.TypeMeta); ok {
			*own = stamp
			return
		}
		o.GetObjectKind().SetGroupVersionKind(stamp.GroupVersionKind())
	}
}

// fillKind sets the kind of an unstructured object that has none.
func fillKind(object any, t runtime.TypeMeta) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok || u == nil || u.Object == nil {
		return
	}
	if s, _ := u.Object["apiVersion"].(string); s == "" && t.APIVersion != "" {
		u.Object["apiVersion"] = t.APIVersion
	}
	if s, _ := u.Object["kind"].(string); s == "" && t.Kind != "" {
		u.Object["kind"] = t.Kind
	}
}

// inEnvelope returns the object in its protobuf envelope; in JSON there is none.
func (c *codec[T]) inEnvelope(m media, raw []byte) (object []byte, t runtime.TypeMeta, err error) {
	if m == mediaJSON {
		return raw, t, nil
	}
	e, ok := openEnvelope(raw)
	if !ok {
		return e.raw, e.kind(), fmt.Errorf("%w: it is not a Kubernetes protobuf object", tarn.ErrUndecodable)
	}
	if string(e.typeMeta) == c.kinds.encoded {
		return e.raw, t, nil // of the collection's kind
	}
	return e.raw, e.kind(), nil
}

// partial reads an object's metadata, whatever its kind.
func partial(m media, raw []byte) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	if m == mediaProtobuf {
		return o, o.Unmarshal(raw)
	}
	return o, utiljson.Unmarshal(raw, o)
}
