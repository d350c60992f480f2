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
	// SharedMetadata lets objects have labels, annotations, owner references and
	// finalizers in common. It saves some 700 bytes for each object. Without it these
	// are each object's own, because they are what programs write to by mistake most
	// often.
	SharedMetadata bool
	// Drop names fields that are skipped on the wire, by their JSON path:
	// "metadata.managedFields". A path goes through lists ("spec.containers.env"), not
	// into maps; one that the type does not have is an error.
	Drop []string
}

// Decoder makes objects of one Go type out of their bytes.
//
//   - The values are those that the stock decoders give.
//   - The bytes are not kept and may be reused.
//   - Any number of goroutines may decode at a time.
type Decoder struct {
	objectType  reflect.Type // of the struct
	pointerType reflect.Type
	meta        uintptr // where in the struct its metadata are, if it has any
	hasMeta     bool
	opts        Options
	protobuf    *protoPlan // nil without a protobuf form
	readers     sync.Pool  // of *protoReader
	past        past
	json        jsonDecoder
}

// NewDecoder returns a decoder of objects of type t, a pointer to a struct:
// *corev1.Pod, *unstructured.Unstructured, *metav1.PartialObjectMetadata.
func NewDecoder(t reflect.Type, opts Options) (*Decoder, error) {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("wire: %v is not a pointer to a struct", t)
	}
	d := &Decoder{objectType: t.Elem(), pointerType: t, opts: opts}
	if f, ok := t.Elem().FieldByName("ObjectMeta"); ok && f.Type == objectMetaType && len(f.Index) == 1 {
		d.meta, d.hasMeta = f.Offset, true
	}
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
	return d.decodeProtobuf(raw, Once, nil)
}

// Moment is when in the life of an object a state of it is decoded.
type Moment uint8

const (
	// Once: nothing is known of what was before or comes after.
	Once Moment = iota
	// First: the object is held from now on, and may change.
	First
	// Again: it is held, in an earlier state.
	Again
	// Last: it is held, and will be no more.
	Last
)

// Held finds the state of an object that is held, by its namespace and name; nil if
// there is none. Several goroutines may call it at a time.
type Held func(namespace, name string) any

// ProtobufAt is Protobuf for states of an object that is held. What the next one
// leaves as it was is taken over, even where no other object has the same.
//
// It need not be true that what was decoded is held, nor that held finds it: a state
// takes over from that one only whose bytes were compared.
func (d *Decoder) ProtobufAt(m Moment, raw []byte, held Held) (any, error) {
	if d.protobuf == nil || d.opts.Pool == nil || held == nil || !d.hasMeta {
		return d.Protobuf(raw)
	}
	return d.decodeProtobuf(raw, m, held)
}

// ForgetAbove forgets what was noted for next states if there are more than n
// objects of which something was: some were not seen to go.
func (d *Decoder) ForgetAbove(n int) {
	if d.past.len() > n {
		d.past.clear()
	}
}

// JSON decodes an object.
func (d *Decoder) JSON(raw []byte) (any, error) {
	return d.decodeJSON(raw)
}
