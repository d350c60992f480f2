package share

import (
	"strings"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// recentSlots is how many parts a worker remembers. Most lookups are of the same few
// parts, and need not go to the pool. The worker holds them strongly, so there are not
// many, and they go with their worker: see [idleWorkers].
const recentSlots = 1024

// recentPart is a part that was found recently, with its hash.
type recentPart struct {
	hash, seed uint64
	pool.Part
	// shared says that the pool knows a second object with the part, or need
	// not know, because it is text.
	shared bool
}

// minPooledText is the size from which on a string goes to the pool. A few
// hundred shorter strings repeat, such as "Always" and "TCP", and recent holds
// them; many thousand do not.
const minPooledText = 48

// keyOf is the name of a part by its content. It is derived from the hash and
// the type, and each fills both halves, so that no two types collide. A decoder
// names parts by other hashes.
func keyOf(seed, hash uint64) pool.Key {
	return pool.Key{First: hash ^ seed>>32, Second: mix(hash, seed, 0xA24BAED4963EE407)}
}

// find looks for a part like x.
func (w *worker) find(s *step, hash uint64, x shape.Memory) (shape.Memory, bool) {
	r := w.recent.Slot(hash, recentSlots)
	if r.hash == hash && r.seed == s.seed && w.same(s, x, r.Memory) {
		if !r.shared {
			r.shared = true
			if y := w.sharer.pool.Put(keyOf(s.seed, hash), r.Part, pool.UnknownOwner); w.same(s, x, y.Memory) {
				r.Part = y
			}
		}
		return r.Memory, true
	}
	if s == textStep && x.N < minPooledText {
		return shape.Memory{}, false
	}
	k := keyOf(s.seed, hash)
	y, ok := w.sharer.pool.Get(k, pool.Request{Owner: pool.UnknownOwner, Now: w.time})
	if !ok {
		return shape.Memory{}, false
	}
	if !w.same(s, x, y.Memory) {
		w.sharer.pool.VerifyPart(k)
		return shape.Memory{}, false
	}
	*r = recentPart{hash, s.seed, y, true}
	return y.Memory, true
}

// offer gives the pool a part that was not found there, and returns the one to
// use.
func (w *worker) offer(s *step, hash uint64, x shape.Memory, size uintptr) shape.Memory {
	made := pool.Part{Memory: x}
	if s != textStep || x.N >= minPooledText {
		made = pool.NewPart(s.toPart(), s.onHeap(x, size), int(size), w.time)
		if y := w.sharer.pool.Put(keyOf(s.seed, hash), made, pool.UnknownOwner); y.Memory != made.Memory && w.same(s, x, y.Memory) {
			made = y
		}
	}
	*w.recent.Slot(hash, recentSlots) = recentPart{hash, s.seed, made, made.Ref == nil}
	return made.Memory
}

// onHeap copies text that the pool may later hold weakly: Go makes no weak
// pointer to a constant of the program, or to memory outside its heap.
func (s *step) onHeap(x shape.Memory, size uintptr) shape.Memory {
	switch {
	case size < pool.MinSize:
	case s == textStep:
		x.Ptr = unsafe.Pointer(unsafe.StringData(strings.Clone(unsafe.String((*byte)(x.Ptr), x.N))))
	case s == textPart:
		x.Ptr = shape.Boxed(strings.Clone(*(*string)(x.Ptr)))
	}
	return x
}

// same compares two parts.
func (w *worker) same(s *step, x, y shape.Memory) bool {
	switch {
	case x.N != y.N:
		return false
	case x.Ptr == y.Ptr:
		return true
	case s == textStep:
		return unsafe.String((*byte)(x.Ptr), x.N) == unsafe.String((*byte)(y.Ptr), y.N)
	case s.kind == jsonStep:
		return w.equalTree(s.value(x), s.value(y), 0)
	default:
		return w.equalPart(s, x.Ptr, y.Ptr, x.N, 0)
	}
}

// forget drops the nodes from mark on.
func (w *worker) forget(mark int) {
	w.nodes = w.nodes[:mark]
	if mark == 0 {
		clear(w.entries)
		w.entries = w.entries[:0]
	}
}
