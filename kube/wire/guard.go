package wire

import (
	"context"
	"hash/maphash"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tarnproject/tarn"
)

// A Guard watches over the objects of a copy, which share parts: it has the parts
// verified, finds the objects that have memory which a program wrote to by mistake, and
// has them reported and read again.
//
// Why it looks through all objects instead of parts knowing who has them: to know it
// would cost memory and time for every object, and stray writes are rare.
type Guard[T any] struct {
	// Pool is where the objects share parts.
	Pool *Pool
	// Decoder, if there is one, returns what makes the objects; nil while that is not
	// known.
	Decoder func() *Decoder
}

// guardPeriod is how often a guard looks, and so within which time something is told
// after it was found.
const guardPeriod = 5 * time.Second

// Run guards until ctx ends. It is for sources to be a [tarn.Maintainer] with.
func (g Guard[T]) Run(ctx context.Context, held tarn.Copy[T]) {
	ticker := time.NewTicker(guardPeriod)
	defer ticker.Stop()
	_, seen := g.Pool.strays.since(0, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			g.Pool.Sweep(now)
			var writes []strayWrite
			writes, seen = g.Pool.strays.since(seen, now)
			if damaged := g.find(writes, held); len(damaged) > 0 {
				held.Repair(damaged)
			}
		}
	}
}

// find returns the objects that writes concern. None of them is used for its next state
// any more.
func (g Guard[T]) find(writes []strayWrite, held tarn.Copy[T]) (damaged []tarn.Damage) {
	if len(writes) == 0 {
		return nil
	}
	var decoder *Decoder
	if g.Decoder != nil {
		decoder = g.Decoder()
	}
	s := search{memory: map[unsafe.Pointer]bool{}}
	for _, w := range writes {
		if w.by != nil && w.by == decoder {
			damaged = append(damaged, tarn.Damage{Key: tarn.Key(w.object), Field: w.field, Repaired: true})
		}
		if w.memory != nil {
			s.memory[w.memory] = true
		}
	}
	if len(s.memory) == 0 {
		return damaged
	}
	for key, object := range held.All() {
		if field, ok := s.in(object); ok {
			damaged = append(damaged, tarn.Damage{Key: key, Field: field})
			decoder.forget(object)
		}
	}
	return damaged
}

// forget lets go of what is known of the state that is held of an object, so that the
// next one takes nothing over from it.
func (d *Decoder) forget(object any) {
	if d == nil || d.opts.Pool == nil {
		return
	}
	if m, err := meta.Accessor(object); err == nil {
		d.past.forget(maphash.String(d.opts.Pool.seedA, string(m.GetUID())))
	}
}
