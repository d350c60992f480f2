package protobuf

import (
	"hash/maphash"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Decoder decodes the objects of one Go type from protobuf.
type Decoder struct {
	objectType  reflect.Type // the struct type
	pointerType reflect.Type
	meta        uintptr // the offset of its metadata, if it has any
	hasMeta     bool
	opts        pool.Options
	plan        *plan
	readers     sync.Pool // of *reader
	lastStates  lastStates
}

// New returns a decoder of structs of type t, nil if t has no protobuf form.
func New(t reflect.Type, opts pool.Options) *Decoder {
	if !reflect.PointerTo(t).Implements(unmarshalerType) {
		return nil
	}
	d := &Decoder{objectType: t, pointerType: reflect.PointerTo(t), opts: opts}
	if f, ok := t.FieldByName("ObjectMeta"); ok && f.Type == shape.ObjectMetaType && len(f.Index) == 1 {
		d.meta, d.hasMeta = f.Offset, true
	}
	d.plan = newPlan(t, opts)
	return d
}

// unmarshaler is what generated protobuf code has.
type unmarshaler interface {
	Unmarshal([]byte) error
}

// Decode decodes an object that has no earlier or later states.
func (d *Decoder) Decode(raw []byte) (any, error) { return d.object(raw, Standalone, nil) }

// DecodeAt decodes a state of an object that the caller holds. What did not change
// is taken over from the held state.
func (d *Decoder) DecodeAt(m Event, raw []byte, held Held) (any, error) {
	if d.opts.Pool == nil || held == nil || !d.hasMeta {
		return d.Decode(raw)
	}
	return d.object(raw, m, held)
}

// ForgetAbove forgets the last states if it remembers those of more than n objects.
func (d *Decoder) ForgetAbove(n int) {
	if d.lastStates.len() > n {
		d.lastStates.clear()
	}
}

// Forget forgets the last state of an object, so that the next one takes nothing over
// from it.
func (d *Decoder) Forget(object any) {
	if d.opts.Pool == nil {
		return
	}
	if m, err := meta.Accessor(object); err == nil {
		d.lastStates.forget(maphash.String(d.opts.Pool.Seed, string(m.GetUID())))
	}
}
