package wire

import (
	"strings"
	"unsafe"
)

// recent remembers the parts that were found last, by hash: most lookups are of
// the same few, and need not go to the pool. It holds them fast, so it is small,
// and goes with its worker: see [idleWorkers].
type recent [1024]recentPart

type recentPart struct {
	hash, seed uint64
	sample
	// shared says that the pool knows of a second object that has the part, or that
	// it need not, because it is text.
	shared bool
}

// worthPool is the size from which on a string goes to the pool. There are a few
// hundred shorter ones that repeat, "Always" and "TCP", which recent holds, and
// many thousand that do not.
const worthPool = 48

// shareKey is the name of a part by its content. It is derived from the hash and
// the type, each of which fills both halves, so that no two types meet; a decoder
// names parts by other hashes.
func shareKey(seed, hash uint64) key {
	return key{hash ^ seed>>32, mix(hash, seed, 0xA24BAED4963EE407)}
}

// find looks for a part like x.
func (w *worker) find(s *step, hash uint64, x part) (part, bool) {
	r := &w.recent[hash%uint64(len(w.recent))]
	if r.hash == hash && r.seed == s.seed && w.same(s, x, r.part) {
		if !r.shared {
			r.shared = true
			if y := w.sharer.pool.put(shareKey(s.seed, hash), r.sample, anyone); w.same(s, x, y.part) {
				r.sample = y
			}
		}
		return r.part, true
	}
	if s == textStep && x.n < worthPool {
		return part{}, false
	}
	k := shareKey(s.seed, hash)
	y, ok := w.sharer.pool.get(k, request{by: anyone, now: w.time})
	if !ok {
		return part{}, false
	}
	if !w.same(s, x, y.part) {
		w.sharer.pool.verify(k)
		return part{}, false
	}
	*r = recentPart{hash, s.seed, y, true}
	return y.part, true
}

// offer gives a part to the pool that was not found there, and returns the one to
// use.
func (w *worker) offer(s *step, hash uint64, x part, size uintptr) part {
	made := sample{part: x}
	if s != textStep || x.n >= worthPool {
		made = sampleOf(s.toPart(), s.onHeap(x, size), int(size), w.time)
		if y := w.sharer.pool.put(shareKey(s.seed, hash), made, anyone); y.part != made.part && w.same(s, x, y.part) {
			made = y
		}
	}
	w.recent[hash%uint64(len(w.recent))] = recentPart{hash, s.seed, made, made.ref == nil}
	return made.part
}

// onHeap copies text that the pool may come to hold weakly: no weak pointer can be
// made to a constant of the program, or to memory that Go does not know.
func (s *step) onHeap(x part, size uintptr) part {
	switch {
	case size < worthSharing:
	case s == textStep:
		x.ptr = unsafe.Pointer(unsafe.StringData(strings.Clone(unsafe.String((*byte)(x.ptr), x.n))))
	case s == textPart:
		x.ptr = boxed(strings.Clone(*(*string)(x.ptr)))
	}
	return x
}

// same compares two parts.
func (w *worker) same(s *step, x, y part) bool {
	switch {
	case x.n != y.n:
		return false
	case x.ptr == y.ptr:
		return true
	case s == textStep:
		return unsafe.String((*byte)(x.ptr), x.n) == unsafe.String((*byte)(y.ptr), y.n)
	case s.kind == jsonStep:
		return w.equalTree(s.value(x), s.value(y), 0)
	default:
		return w.equalPart(s, x.ptr, y.ptr, x.n, 0)
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
