package wire

import (
	"hash/maphash"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// protoDecoder decodes the objects of one Go type from protobuf.
type protoDecoder struct {
	objectType  reflect.Type // of the struct
	pointerType reflect.Type
	meta        uintptr // where in the struct its metadata are, if it has any
	hasMeta     bool
	opts        pool.Options
	plan        *protoPlan
	readers     sync.Pool // of *protoReader
	past        past
}

// newProtoDecoder returns a decoder of structs of type t, nil if t has no protobuf form.
func newProtoDecoder(t reflect.Type, opts pool.Options) *protoDecoder {
	if !reflect.PointerTo(t).Implements(unmarshalerType) {
		return nil
	}
	d := &protoDecoder{objectType: t, pointerType: reflect.PointerTo(t), opts: opts}
	if f, ok := t.FieldByName("ObjectMeta"); ok && f.Type == shape.ObjectMetaType && len(f.Index) == 1 {
		d.meta, d.hasMeta = f.Offset, true
	}
	d.plan = newProtoPlan(t, opts)
	return d
}

// unmarshaler is what generated protobuf code has.
type unmarshaler interface {
	Unmarshal([]byte) error
}

// decode decodes an object of which nothing else is known.
func (d *protoDecoder) decode(raw []byte) (any, error) { return d.object(raw, Once, nil) }

// decodeAt decodes a state of an object that is held. What the state leaves as it was in
// the one that is held is taken over from there.
func (d *protoDecoder) decodeAt(m Moment, raw []byte, held Held) (any, error) {
	if d.opts.Pool == nil || held == nil || !d.hasMeta {
		return d.decode(raw)
	}
	return d.object(raw, m, held)
}

// forgetAbove forgets the last states if there are those of more than n objects.
func (d *protoDecoder) forgetAbove(n int) {
	if d.past.len() > n {
		d.past.clear()
	}
}

// forget forgets the last state of an object, so that the next one takes nothing over
// from it.
func (d *protoDecoder) forget(object any) {
	if d.opts.Pool == nil {
		return
	}
	if m, err := meta.Accessor(object); err == nil {
		d.past.forget(maphash.String(d.opts.Pool.Seed, string(m.GetUID())))
	}
}
