package wire

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// recent remembers the parts that were found last, by hash: most lookups are of
// the same few, and need not go to the pool. It holds them fast, so it is small,
// and goes with its worker: see [idleWorkers].
type recent [1024]struct {
	hash, seed uint64
	part       part
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
		return r.part, true
	}
	if s == textStep && x.n < worthPool {
		return part{}, false
	}
	y, ok := w.sharer.pool.get(shareKey(s.seed, hash))
	if !ok {
		return part{}, false
	}
	same, replaced := w.good(s, hash, x, y)
	if replaced {
		y = x // which others may have by now: nothing is to be built in it
	} else if !same {
		return part{}, false
	}
	r.hash, r.seed, r.part = hash, s.seed, y
	return y, true
}

// offer gives a part to the pool that was not found there, and returns the one to
// use.
func (w *worker) offer(s *step, hash uint64, x part, size uintptr) part {
	if s != textStep || x.n >= worthPool {
		x = s.onHeap(x, size)
		y := w.sharer.pool.put(shareKey(s.seed, hash), x, int(size))
		if y != x {
			if same, _ := w.good(s, hash, x, y); same {
				x = y
			}
		}
	}
	r := &w.recent[hash%uint64(len(w.recent))]
	r.hash, r.seed, r.part = hash, s.seed, x
	return x
}

// onHeap copies text that the pool may come to hold weakly: no weak pointer can be
// made to a constant of the program, or to memory that Go does not know.
func (s *step) onHeap(x part, size uintptr) part {
	switch {
	case size < worthWeak:
	case s == textStep:
		x.ptr = unsafe.Pointer(unsafe.StringData(strings.Clone(unsafe.String((*byte)(x.ptr), x.n))))
	case s == textPart:
		x.ptr = boxed(strings.Clone(*(*string)(x.ptr)))
	}
	return x
}

// good says whether y, which the pool has, is as x. If it is not, someone may have
// changed it since it came there: then x takes its place.
func (w *worker) good(s *step, hash uint64, x, y part) (same, replaced bool) {
	if w.same(s, x, y) {
		return true, false
	}
	if changed := w.rehash(s, y) != hash; changed && w.left >= 0 {
		w.sharer.replace(s, hash, x, y)
		return false, true
	}
	return false, false
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

// rehash hashes a part of the pool again.
func (w *worker) rehash(s *step, y part) uint64 {
	mark, opaque := len(w.nodes), w.opaque
	defer func() { w.forget(mark); w.opaque = opaque }()
	switch {
	case s == textStep:
		return hashString(unsafe.String((*byte)(y.ptr), y.n))
	case s.kind == jsonStep:
		return w.hashTree(s.value(y), 0)
	default:
		return w.hashPart(s, y.ptr, y.n, 0)
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

// replace puts x in the place of y, which is not what it was when it came into the
// pool, and tells about it.
func (s *Sharer) replace(at *step, hash uint64, x, y part) {
	k := shareKey(at.seed, hash)
	s.pool.shard(k).replace(k, x)
	if at.kind != jsonStep && at.t != nil && sameValue(at.typed(x), at.typed(y)) {
		return
	}
	s.pool.mutated()
	if s.opts.OnMutation == nil {
		return
	}
	s.opts.OnMutation(fmt.Errorf("wire: someone changed a part that cached objects share, %s: all objects that have it show the change; copy objects with DeepCopy before changing them", at.of()))
}

// typed is a part as a value of its Go type.
func (s *step) typed(x part) any {
	header := sliceHeader{x.ptr, x.n, x.n} // of which pointers and maps are the first word
	return reflect.NewAt(s.t, unsafe.Pointer(&header)).Elem().Interface()
}

// of says what a step leads to.
func (s *step) of() string {
	if s.owner == nil {
		return "in a JSON tree"
	}
	return "at " + s.owner.name(uintptr(s.off))
}
