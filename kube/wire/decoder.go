package wire

import (
	"fmt"
	"reflect"
	"sync"
)

// Options shape a [Decoder].
type Options struct {
	// Pool is where equal parts are found again; nil shares nothing.
	Pool *Pool
	// PrivateMaps keeps label and annotation maps from being shared.
	PrivateMaps bool
	// Drop names fields that are skipped on the wire, by their JSON path:
	// "metadata.managedFields". A path goes through lists ("spec.containers.env"), not
	// into maps; one that the type does not have is an error.
	Drop []string
	// OnMutation is told when a shared part is found to have been changed by
	// someone. It may be called by several goroutines at a time.
	OnMutation func(error)
}

// Decoder makes objects of one Go type out of their bytes.
//
//   - The values are those that the stock decoders give.
//   - The bytes are not kept and may be reused.
//   - Any number of goroutines may decode at a time.
type Decoder struct {
	objectType reflect.Type // of the struct
	opts       Options
	protobuf   *protoPlan // nil without a protobuf form
	readers    sync.Pool  // of *protoReader
	past       past
	json       jsonDecoder
}

// NewDecoder returns a decoder of objects of type t, a pointer to a struct:
// *corev1.Pod, *unstructured.Unstructured, *metav1.PartialObjectMetadata.
func NewDecoder(t reflect.Type, opts Options) (*Decoder, error) {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("wire: %v is not a pointer to a struct", t)
	}
	d := &Decoder{objectType: t.Elem(), opts: opts}
	if err := d.checkDrop(); err != nil {
		return nil, err
	}
	if d.HasProtobuf() {
		d.protobuf = newProtoPlan(d.objectType, opts)
	}
	return d, nil
}

// unmarshaler is what generated protobuf code has.
type unmarshaler interface {
	Unmarshal([]byte) error
}

// HasProtobuf says whether objects of this type have a protobuf form.
func (d *Decoder) HasProtobuf() bool {
	return reflect.PointerTo(d.objectType).Implements(unmarshalerType)
}

// Protobuf decodes an object's own message: what runtime.Unknown has as raw, or a
// list as one item.
func (d *Decoder) Protobuf(raw []byte) (any, error) {
	if d.protobuf == nil {
		return nil, fmt.Errorf("wire: %v has no protobuf form; ask the server for JSON", d.objectType)
	}
	return d.decodeProtobuf(raw, false)
}

// ProtobufAgain is Protobuf for a later state of an object that is held already: what
// it left as it was is taken over, even where no other object has the same.
func (d *Decoder) ProtobufAgain(raw []byte) (any, error) {
	if d.protobuf == nil {
		return d.Protobuf(raw)
	}
	return d.decodeProtobuf(raw, true)
}

// JSON decodes an object.
func (d *Decoder) JSON(raw []byte) (any, error) {
	return d.decodeJSON(raw)
}
