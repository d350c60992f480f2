package share

import (
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// node is the hash of a part and all below it.
type node struct {
	hash uint64
	// next is the node after those below this one.
	next int32
	// entry is the first of the entries of a tree's map, and entries is their
	// number.
	entry, entries int32
	opaque         bool
	// cut says that the part was not read to its end.
	cut bool
}

const (
	emptySalt = 0x2545F4914F6CDD1D
	boolSalt  = 0xD6E8FEB86659FD93
)

// hashMemory hashes bytes without pointers.
func hashMemory(at unsafe.Pointer, size uintptr) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(at))
	case 4:
		return uint64(*(*uint32)(at))
	case 8:
		return *(*uint64)(at)
	default:
		return hashBytes(at, size)
	}
}

// salts tell the fields of a struct apart.
var salts = func() (row [64]uint64) {
	for i := range row {
		row[i] = salted(uint64(i))
	}
	return row
}()

func salt(step int) uint64 { return salts[step%len(salts)] + uint64(step)&^63 }

// hash adds a value at base to h. Zero values add nothing, and most fields of
// most objects are zero.
func (w *worker) hash(p *plan, base unsafe.Pointer, h uint64, depth int) uint64 {
	for i := range p.steps {
		s := &p.steps[i]
		at := unsafe.Add(base, s.off)
		if s.kind == memoryStep {
			if x := hashMemory(at, uintptr(s.size)); x != 0 {
				h = mix(h, x, salt(i))
			}
			continue
		}
		if s.kind == lazyStep {
			w.opaque = w.opaque || !w.mapped && shape.IsLazy(at)
			continue
		}
		if shape.IsNil(at) {
			continue
		}
		x := uint64(emptySalt)
		switch s.kind {
		case stringStep:
			text := *(*string)(at)
			if text == "" {
				continue
			}
			x = hashString(text)
		case sliceStep:
			if list := (*shape.SliceHeader)(at); list.Len > 0 {
				x = w.hashPart(s, list.Ptr, list.Len, depth)
			}
		case pointerStep, mapStep:
			x = w.hashPart(s, *(*unsafe.Pointer)(at), 1, depth)
		case treeStep:
			x = w.hashTree(*(*map[string]any)(at), depth)
		case jsonStep:
			x = w.hashTree(*(*any)(at), depth)
		default:
			w.opaque = true
		}
		h = mix(h, x, salt(i))
	}
	return h
}

// hashPart records the hash of a part and of everything below it.
func (w *worker) hashPart(s *step, x unsafe.Pointer, n, depth int) uint64 {
	at, outer := w.enter()
	h, mapped := s.seed, w.mapped
	w.mapped = s.kind == mapStep
	switch {
	case depth >= maxDepth || w.left < 0:
		w.nodes[at].cut = true
	case s.kind == mapStep:
		h = s.reader.hash(w, x, h, depth+1)
		w.nodes = w.nodes[:at+1] // a map is shared as a whole or not at all
	case s.elem.opaque:
		w.opaque = true
	case s.elem.memory:
		h = mix(h, hashMemory(x, s.elem.size*uintptr(n)), salted(uint64(n)))
	default:
		for i := range n {
			h = mix(h, uint64(i), emptySalt)
			h = w.hash(s.elem, unsafe.Add(x, uintptr(i)*s.elem.size), h, depth+1)
		}
	}
	w.mapped = mapped
	return w.leave(at, outer, h)
}

// enter begins a node; leave ends it.
func (w *worker) enter() (at int, outer bool) {
	at, outer = len(w.nodes), w.opaque
	w.left--
	w.opaque = false
	w.nodes = append(w.nodes, node{})
	return at, outer
}

func (w *worker) leave(at int, outer bool, h uint64) uint64 {
	n := &w.nodes[at]
	n.hash, n.next, n.opaque = h, int32(len(w.nodes)), w.opaque || n.cut
	w.opaque = n.opaque || outer
	return h
}
