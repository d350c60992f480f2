package wire

import (
	"fmt"
	"reflect"

	"github.com/tarnproject/tarn/kube/wire/internal/json"
	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/protobuf"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Options say what a [Decoder] shares and what it leaves out.
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

func (o Options) internal() pool.Options {
	return pool.Options{Pool: o.Pool.internal(), SharedMetadata: o.SharedMetadata, Drop: o.Drop}
}

// Decoder makes objects of one Go type out of their bytes.
//
//   - The values are those that the stock decoders give.
//   - The bytes are not kept and may be reused.
//   - Any number of goroutines may decode at a time.
type Decoder struct {
	objectType reflect.Type      // of the struct
	protobuf   *protobuf.Decoder // nil without a protobuf form
	json       *json.Decoder
}

// NewDecoder returns a decoder of objects of type t, a pointer to a struct:
// *corev1.Pod, *unstructured.Unstructured, *metav1.PartialObjectMetadata.
func NewDecoder(t reflect.Type, opts Options) (*Decoder, error) {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("wire: %v is not a pointer to a struct", t)
	}
	t = t.Elem()
	if err := shape.CheckDrop(t, opts.Drop); err != nil {
		return nil, err
	}
	return &Decoder{objectType: t, protobuf: protobuf.New(t, opts.internal()), json: json.New(t, opts.internal())}, nil
}

// HasProtobuf says whether objects of this type have a protobuf form.
func (d *Decoder) HasProtobuf() bool { return d.protobuf != nil }

// Protobuf decodes an object's own message: what runtime.Unknown has as raw, or a
// list as one item.
func (d *Decoder) Protobuf(raw []byte) (any, error) {
	if d.protobuf == nil {
		return nil, fmt.Errorf("wire: %v has no protobuf form; ask the server for JSON", d.objectType)
	}
	return d.protobuf.Decode(raw)
}

// Event is what happens to an object with the state that is decoded.
type Event = protobuf.Event

const (
	// Standalone: nothing is known of earlier or later states.
	Standalone = protobuf.Standalone
	// Added: the object is held from now on, and may change. Items of lists are Added.
	Added = protobuf.Added
	// Modified: the object is held in an earlier state.
	Modified = protobuf.Modified
	// Deleted: the object is held, and is not any more after this state.
	Deleted = protobuf.Deleted
)

// Held finds the state of an object that is held, by its namespace and name; nil if
// there is none. Several goroutines may call it at a time.
type Held = protobuf.Held

// ProtobufAt is [Decoder.Protobuf] for states of an object that is held. What a state
// leaves unchanged is taken over from the one before, even where no other object has
// the same.
//
// held may find nothing, or another state than the one that was decoded: a state takes
// over only from a state whose bytes were compared.
func (d *Decoder) ProtobufAt(event Event, raw []byte, held Held) (any, error) {
	if d.protobuf == nil {
		return d.Protobuf(raw)
	}
	return d.protobuf.DecodeAt(event, raw, held)
}

// ForgetAbove forgets the last states of all objects if those of more than n are
// remembered: some objects were deleted unseen.
func (d *Decoder) ForgetAbove(n int) {
	if d.protobuf != nil {
		d.protobuf.ForgetAbove(n)
	}
}

// JSON decodes an object.
func (d *Decoder) JSON(raw []byte) (any, error) { return d.json.Decode(raw) }
