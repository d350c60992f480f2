package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/tarnproject/tarn"
)

// page belongs to a leaf of the tree of all cells, across states: copies of the
// leaf share it. It records when an object of the leaf last changed, and holds the
// objects side by side for walks.
//
// Why: a cell and its version are two places somewhere in memory, and a walk
// through 100,000 of them waits for memory most of the time: 75 ns of CPU for each
// object, where client-go's map, which is contiguous, takes 17. With pages, as long
// as little changes, it is 15 (BenchmarkWalk).
//
// A page costs 32 bytes per object, only for objects that are walked. It is filled
// on the second walk that finds it unchanged, so that a store which changes faster
// than it is walked does not fill pages for nothing.
type page struct {
	// changed is the number of the state that last changed the leaf, perhaps one
	// that is not published yet.
	changed atomic.Uint64
	// walked is changed at the time of the last walk.
	walked  atomic.Uint64
	content atomic.Pointer[pageContent]
}

// pageContent is a []entry[T] in the order of the leaf, as state seq shows it.
type pageContent struct {
	seq     uint64
	entries any
}

type entry[T any] struct {
	key    tarn.Key
	object T
}

// maxPaged is the size of objects that are worth a copy: pointers and interfaces
// are.
const maxPaged = 16

// newPage gives a leaf a new page.
func (n *node[E]) newPage(p editor) {
	n.page = &page{}
	n.page.changed.Store(p.seq)
	for _, e := range n.items {
		e.setPage(n.page)
	}
}

// touch records that state seq changes something on the page.
func (p *page) touch(seq uint64) {
	if p.changed.Load() != seq {
		p.changed.Store(seq)
	}
	if p.content.Load() != nil {
		p.content.Store(nil) // it would keep old objects alive
	}
}

// entries returns the objects of a leaf, nil if they have to be collected.
func (st *state[T]) entries(leaf *node[*cell[T]]) []entry[T] {
	p := leaf.page
	content := p.content.Load()
	changed := p.changed.Load()
	if content != nil && changed <= min(content.seq, st.seq) {
		return content.entries.([]entry[T])
	}
	if p.walked.Load() != changed {
		p.walked.Store(changed)
		return nil
	}
	var none T
	if changed > st.seq || unsafe.Sizeof(none) > maxPaged {
		return nil
	}
	entries := make([]entry[T], len(leaf.items))
	for i, c := range leaf.items {
		v := c.at(st.seq)
		if v == nil {
			return nil
		}
		entries[i] = entry[T]{c.key, v.object}
	}
	p.content.Store(&pageContent{st.seq, entries})
	return entries
}
