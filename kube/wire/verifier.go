package wire

import (
	"context"
	"time"
	"unsafe"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/protobuf"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// A Verifier verifies the parts that the objects of a copy share. It finds the
// objects that a stray write affects, reports them and has them read again.
//
// Why it searches all objects when a write is found: if each part knew the
// objects that have it, every object would cost memory and time, and stray
// writes are rare.
type Verifier[T any] struct {
	// Pool is where the objects share parts.
	Pool *Pool
	// Decoder, if set, returns the decoder of the objects; nil before the first
	// one exists.
	Decoder func() *Decoder
}

// verifyPeriod is how often a verifier looks, and so the longest time between
// finding a write and reporting it.
const verifyPeriod = 5 * time.Second

// Run verifies until ctx ends. With it a source implements [tarn.Maintainer].
func (v Verifier[T]) Run(ctx context.Context, held tarn.Copy[T]) {
	ticker := time.NewTicker(verifyPeriod)
	defer ticker.Stop()
	_, seen := v.Pool.parts.StrayWritesSince(0, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			v.Pool.Sweep(now)
			var writes []pool.StrayWrite
			writes, seen = v.Pool.parts.StrayWritesSince(seen, now)
			if damaged := v.find(writes, held); len(damaged) > 0 {
				held.Repair(damaged)
			}
		}
	}
}

// find returns the objects that writes affect. The next states of these objects take
// nothing over from them.
func (v Verifier[T]) find(writes []pool.StrayWrite, held tarn.Copy[T]) (damaged []tarn.Damage) {
	if len(writes) == 0 {
		return nil
	}
	var decoder *protobuf.Decoder // only the protobuf decoder remembers what it decoded
	if v.Decoder != nil {
		if d := v.Decoder(); d != nil {
			decoder = d.protobuf
		}
	}
	s := shape.Search{Memory: map[unsafe.Pointer]bool{}}
	for _, w := range writes {
		if decoder != nil && w.By == any(decoder) {
			damaged = append(damaged, tarn.Damage{Key: tarn.Key(w.Object), Field: w.Field, Repaired: true})
		}
		if w.Memory != nil {
			s.Memory[w.Memory] = true
		}
	}
	if len(s.Memory) == 0 {
		return damaged
	}
	for key, object := range held.All() {
		if field, ok := s.Find(object); ok {
			damaged = append(damaged, tarn.Damage{Key: key, Field: field})
			if decoder != nil {
				decoder.Forget(object)
			}
		}
	}
	return damaged
}
