package protobuf

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// errTooDeep says that messages are nested deeper than is reasonable.
var errTooDeep = fmt.Errorf("messages are nested more than %d deep", maxDepth)

// object tries the fast path, and leaves any irregular object to the stock decoder:
// values and errors are the stock decoder's then.
func (d *Decoder) object(raw []byte, m Event, held Held) (object any, err error) {
	at := 0
	defer func() {
		if p := recover(); p != nil { // in a type's own Unmarshal
			object, err = nil, d.error(fmt.Errorf("malformed: %v", p), at, len(raw))
		}
	}()
	r, _ := d.readers.Get().(*reader)
	if r == nil {
		r = &reader{decoder: d, pool: d.opts.Pool}
	}
	v := reflect.New(d.objectType)
	r.begin(v.UnsafePointer(), d.objectType.Size(), m, held)
	ok := r.object(d.plan.root, raw, v.UnsafePointer())
	deep := r.deep
	at = r.at
	d.readers.Put(r)
	if ok {
		return v.Interface(), nil
	}
	if deep || d.plan.root.tooDeep(raw, maxDepth) {
		return nil, d.error(errTooDeep, at, len(raw))
	}
	object, err = d.stock(raw)
	if err != nil {
		return nil, d.error(err, at, len(raw))
	}
	return object, nil
}

func (d *Decoder) error(err error, at, size int) error {
	return fmt.Errorf("wire: %v in protobuf, at byte %d of %d: %w", d.objectType, at, size, err)
}

// object decodes a whole object into the struct at base, and says whether it could.
func (r *reader) object(n *node, raw []byte, base unsafe.Pointer) bool {
	r.data, r.owner, r.at, r.deep = raw, pool.UnknownOwner, 0, false
	r.stats.objects++
	if r.pool != nil {
		// Recent parts are used without a lookup in the pool, so they are forgotten
		// when any decoder finds a stray write.
		if n := r.pool.Epoch.Load(); n != r.epoch {
			r.epoch = n
			r.stats.forget()
		}
	}
	ok := len(raw) <= math.MaxInt32 && r.message(n, 0, len(raw), base)
	if ok {
		r.texts.close(raw, deferredFrame{})
		if r.uid != 0 {
			r.note(base)
		}
	} else {
		r.texts.rewind(deferredFrame{})
	}
	r.data, r.depth, r.admitting = nil, 0, false
	r.repeats.forget()
	r.leave()
	return ok
}

// ownMessage lets a type decode itself. Some types do not skip groups safely, so
// groups go to the stock decoder, after a check of their depth.
func (r *reader) ownMessage(n *node, i, end int, base unsafe.Pointer) bool {
	b := r.data[:end]
	if !flat(b, i) {
		return r.stop(i)
	}
	if err := n.unmarshal(b[i:], base); err != nil {
		return r.stop(i)
	}
	if n.clips {
		clip(reflect.NewAt(n.typ, base).Elem())
	}
	if n.quantities && (n.typ != shape.QuantityType || shape.IsLazy(base)) {
		r.lazies++
	}
	return true
}

// flat says whether a message is well-formed on its own level, and has no groups.
func flat(b []byte, i int) bool {
	for i < len(b) {
		tag, next := varint(b, i)
		if next < 0 {
			return false
		}
		if i = skip(b, next, uint8(tag&7)); i < 0 {
			return false
		}
	}
	return true
}

// unmarshal is the type's own decoder.
func (n *node) unmarshal(raw []byte, base unsafe.Pointer) error {
	return reflect.NewAt(n.typ, base).Interface().(unmarshaler).Unmarshal(raw)
}

// stock decodes as generated code does, except for fields to drop.
func (d *Decoder) stock(raw []byte) (any, error) {
	v := reflect.New(d.objectType)
	if err := v.Interface().(unmarshaler).Unmarshal(raw); err != nil {
		return nil, err
	}
	for _, path := range d.opts.Drop {
		shape.Drop(v.Elem(), path)
	}
	return v.Interface(), nil
}
