package wire

import (
	"fmt"
	"reflect"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Decoder makes objects of one Go type out of their bytes.
//
//   - The values are those that the stock decoders give.
//   - The bytes are not kept and may be reused.
//   - Any number of goroutines may decode at a time.
type Decoder struct {
	objectType reflect.Type  // of the struct
	protobuf   *protoDecoder // nil without a protobuf form
	json       *jsonDecoder
}

// NewDecoder returns a decoder of objects of type t, a pointer to a struct:
// *corev1.Pod, *unstructured.Unstructured, *metav1.PartialObjectMetadata.
func NewDecoder(t reflect.Type, opts pool.Options) (*Decoder, error) {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("wire: %v is not a pointer to a struct", t)
	}
	t = t.Elem()
	if err := shape.CheckDrop(t, opts.Drop); err != nil {
		return nil, err
	}
	return &Decoder{objectType: t, protobuf: newProtoDecoder(t, opts), json: newJSONDecoder(t, opts)}, nil
}

// HasProtobuf says whether objects of this type have a protobuf form.
func (d *Decoder) HasProtobuf() bool { return d.protobuf != nil }

// Protobuf decodes an object's own message: what runtime.Unknown has as raw, or a
// list as one item.
func (d *Decoder) Protobuf(raw []byte) (any, error) {
	if d.protobuf == nil {
		return nil, fmt.Errorf("wire: %v has no protobuf form; ask the server for JSON", d.objectType)
	}
	return d.protobuf.decode(raw)
}

// ProtobufAt is Protobuf for states of an object that is held. What the next one
// leaves as it was is taken over, even where no other object has the same.
//
// It need not be true that what was decoded is held, nor that held finds it: a state
// takes over from that one only whose bytes were compared.
func (d *Decoder) ProtobufAt(m Moment, raw []byte, held Held) (any, error) {
	if d.protobuf == nil {
		return d.Protobuf(raw)
	}
	return d.protobuf.decodeAt(m, raw, held)
}

// ForgetAbove forgets what was noted for next states if there are more than n
// objects of which something was: some were not seen to go.
func (d *Decoder) ForgetAbove(n int) {
	if d.protobuf != nil {
		d.protobuf.forgetAbove(n)
	}
}

// JSON decodes an object.
func (d *Decoder) JSON(raw []byte) (any, error) { return d.json.decode(raw) }
