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
	// Drop names fields to skip on the wire, by their JSON path:
	// "metadata.managedFields". A path goes through lists
	// ("spec.containers.env"), not into maps. A path that the type does not
	// have is an error.
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
	objectType reflect.Type      // the struct type
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

// Event is what happens to an object when the decoded state arrives.
type Event = protobuf.Event

const (
	// Standalone: earlier and later states are unknown.
	Standalone = protobuf.Standalone
	// Added: the caller holds the object from now on, and it may change. Items
	// of lists are Added.
	Added = protobuf.Added
	// Modified: the caller holds an earlier state of the object.
	Modified = protobuf.Modified
	// Deleted: the caller holds the object, and drops it after this state.
	Deleted = protobuf.Deleted
)

// Held returns the state of an object that the caller holds, by namespace and
// name; nil if it holds none. Several goroutines may call it at a time.
type Held = protobuf.Held

// ProtobufAt is [Decoder.Protobuf] for states of an object that the caller
// holds. Unchanged fields are taken over from the previous state, even where no
// other object has the same content.
//
// held may find nothing, or another state than the one that was decoded: a
// state takes over only from a state whose bytes were compared.
func (d *Decoder) ProtobufAt(event Event, raw []byte, held Held) (any, error) {
	if d.protobuf == nil {
		return d.Protobuf(raw)
	}
	return d.protobuf.DecodeAt(event, raw, held)
}

// ForgetAbove forgets the last states of all objects if it remembers more than
// n of them: then some objects were deleted unseen.
func (d *Decoder) ForgetAbove(n int) {
	if d.protobuf != nil {
		d.protobuf.ForgetAbove(n)
	}
}

// JSON decodes an object.
func (d *Decoder) JSON(raw []byte) (any, error) { return d.json.Decode(raw) }
