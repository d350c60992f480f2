package share

import (
	"reflect"
	"unsafe"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// worker shares one object at a time. What it has learned, and what it has just
// seen, stays with it for the next one.
type worker struct {
	sharer *Sharer
	root   *plan
	recent recentParts
	// sites is how each field of each plan has done, trees the same for the keys of
	// JSON trees.
	sites [][]site
	trees *[2 * treeSites]site
	// nodes are the hashes of what is being shared, each before those below it.
	nodes []node
	// entries are those of the maps of JSON trees, which give their content in
	// another order each time.
	entries []entry
	// texts are strings that belong to the object alone, of the blocks being built.
	texts   []ownText
	scalars ownScalars
	// inPlace says that the object may be written to.
	inPlace bool
	// offered counts the parts being built that the pool will be offered.
	offered int
	comparer
	// opaque is set when something is read that cannot be shared.
	opaque bool
	// left is how much may still be read of this object.
	left    int
	copiers map[*step]*copier
	// epoch is the number of the object, time when it came.
	epoch uint32
	time  pool.Seconds
}

// node is the hash of a part and all below it.
type node struct {
	hash uint64
	// next is the node after those below this one.
	next int32
	// entry is the first of the entries of a tree's map, which has so many.
	entry, entries int32
	opaque         bool
	// cut says that the part was not read to its end.
	cut bool
}

const (
	// maxDepth and maxReads bound what is read of one object. API objects have no
	// cycles, but what has one must not hang; it is not shared.
	maxDepth = 200
	maxReads = 1 << 20

	unhashed = -1
)

func (w *worker) begin() {
	w.nodes, w.left, w.compares, w.opaque = w.nodes[:0], maxReads, maxReads, false
	w.mapped = false
	w.texts, w.offered = w.texts[:0], 0
	w.scalars.forget()
	w.epoch++
	w.time = pool.Now()
}

// plan returns the plan for an object, which is most often that of the last one.
func (w *worker) plan(t reflect.Type) *plan {
	if w.root == nil || w.root.t != t {
		w.root = planFor(t, !w.sharer.opts.SharedMetadata)
	}
	return w.root
}

// known returns the sites of a plan's steps.
func (w *worker) known(p *plan) []site {
	if p.id >= len(w.sites) {
		w.sites = append(w.sites, make([][]site, p.id+1-len(w.sites))...)
	}
	if w.sites[p.id] == nil {
		w.sites[p.id] = make([]site, len(p.steps))
	}
	return w.sites[p.id]
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

// hash adds a value at base to h. What is zero adds nothing, which most fields
// of most objects are.
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

// hashPart notes the hash of a part and of all below it.
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
