package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
)

// edit is one write, from the first change to its publication. Versions that it
// hangs into cells carry the number of a state that nobody has yet, so readers
// pass over them; only when all is in place is the state published, with its
// version and books, by one store of a pointer.
type edit[T any] struct {
	store *Store[T]
	last  *state[T]
	seq   uint64
	// touched has each cell that was written, once.
	touched []touch[T]
	// come and gone count the objects that are more and less.
	come, gone int
	// inPlace says that readers are kept waiting at the gate.
	inPlace bool
	// left is, for each index, the terms that some cell stood under.
	left map[*index[T]][]*term
	// failed is what the write leaves out of an index.
	failed map[place]error
}

// touch is a cell that an edit has written; fresh if the edit made it.
type touch[T any] struct {
	cell  *cell[T]
	fresh bool
}

// place is one key in one index.
type place struct {
	key   tarn.Key
	index string
}

// begin starts an edit. The caller has locked writing.
func (s *Store[T]) begin() *edit[T] {
	last := s.current.Load()
	s.edit = edit[T]{store: s, last: last, seq: last.seq + 1, touched: s.edit.touched[:0]}
	return &s.edit
}

// expect makes room for so many writes.
func (e *edit[T]) expect(writes int) {
	if writes > maxTouched {
		e.touched = slices.Grow(e.touched, writes)
	}
	e.store.table.reserve(writes)
}

func (e *edit[T]) put(key tarn.Key, object T) {
	v := &version[T]{object: object, stamp: e.seq << 1}
	hash := e.store.table.hash(key)
	c := e.store.table.seek(key, hash)
	if c == nil {
		c = &cell[T]{key: key}
		v.before.Store(&e.store.nothing)
		c.head.Store(v)
		e.store.table.insert(c, hash)
		e.touched = append(e.touched, touch[T]{c, true})
		return
	}
	e.hang(c, v)
}

func (e *edit[T]) remove(key tarn.Key) {
	if c := e.store.table.find(key); c != nil {
		e.end(c)
	}
}

// end is the end of a cell's object.
func (e *edit[T]) end(c *cell[T]) {
	if !c.head.Load().gone() {
		e.hang(c, &version[T]{stamp: e.seq<<1 | 1})
	}
}

// hang makes v the newest version of a cell.
func (e *edit[T]) hang(c *cell[T], v *version[T]) {
	head := c.head.Load()
	if head.seq() == e.seq {
		v.before.Store(head.before.Load())
	} else {
		v.before.Store(head)
		e.touched = append(e.touched, touch[T]{c, false})
	}
	c.head.Store(v)
	if c.page != nil {
		c.page.touch(e.seq)
	}
}

// keepOnly ends every object that the edit has not written.
func (e *edit[T]) keepOnly() {
	e.last.cells.from("", func(cells []*cell[T]) bool {
		for _, c := range cells {
			if c.head.Load().seq() != e.seq {
				e.end(c)
			}
		}
		return true
	})
}

// abandon takes everything back.
func (e *edit[T]) abandon() {
	for _, t := range e.touched {
		if t.fresh {
			e.store.table.remove(t.cell)
		} else {
			t.cell.head.Store(t.cell.head.Load().before.Load())
		}
	}
	clear(e.touched)
}

// publish makes the edit the newest state, lets go of what it replaced and tells
// those who wait.
func (e *edit[T]) publish(v tarn.Version) error {
	s := e.store
	next := &state[T]{seq: e.seq, version: v, writing: &e.store.writing, books: e.books()}
	s.current.Store(next)
	if e.inPlace {
		s.gate.open()
	}
	for _, t := range e.touched {
		if t.cell.head.Load().gone() {
			s.table.remove(t.cell)
		}
	}
	s.stale.settle(e.last, next, e.touched)
	e.tell(next.books)
	err := objectErrors(e.failed)
	clear(e.touched)
	if s.edit = (edit[T]{touched: e.touched[:0]}); cap(e.touched) > maxTouched {
		s.edit.touched = nil
	}
	return err
}

// maxTouched is how much room for touches is kept from one edit to the next.
const maxTouched = 64

// maxInPlace is how many objects may be written while readers that begin are
// kept waiting. More are written beside what readers have, by copying.
const maxInPlace = 4

// books gives the ordered parts of the new state: the old ones, if no object
// came or went or changed its place in an index.
func (e *edit[T]) books() *books[T] {
	for _, t := range e.touched {
		come, gone := t.turn()
		e.come, e.gone = e.come+come, e.gone+gone
	}
	shelves := e.last.indexes
	if len(e.store.building) > 0 {
		shelves = slices.Concat(shelves, e.store.building)
	}
	p := pen{seq: e.seq, clean: e.last.seq}
	if len(e.touched) >= minRebuild && len(e.touched)*rebuildIndex > e.last.cells.n {
		return e.rebuild(p, shelves)
	}
	moves := e.moves(shelves)
	if e.come+e.gone+len(moves) == 0 {
		return e.last.books
	}
	if len(e.touched) <= maxInPlace {
		e.inPlace = true
		p.clean = e.store.close(e.last)
	}
	return &books[T]{cells: e.cells(p), indexes: e.shelve(p, shelves, moves)}
}

// turn says whether the object of a cell is one that came or that has gone.
func (t touch[T]) turn() (come, gone int) {
	switch ended := t.cell.head.Load().gone(); {
	case t.fresh && !ended:
		return 1, 0
	case !t.fresh && ended:
		return 0, 1
	}
	return 0, 0
}

// rebuildCells and rebuildIndex are how many objects of a store a change may
// leave alone, for each that it moves, and still be cheaper to make by building
// a new tree than by changing the old one.
const (
	rebuildCells = 64
	rebuildIndex = 16
	minRebuild   = 32
)

// cells is the tree of all cells after the edit.
func (e *edit[T]) cells(p pen) tree[*cell[T]] {
	cells := e.last.cells
	if moves := e.come + e.gone; moves < minRebuild || moves*rebuildCells < cells.n {
		for _, t := range e.touched {
			switch come, gone := t.turn(); {
			case come > 0:
				cells.set(p, t.cell)
			case gone > 0:
				cells.delete(p, string(t.cell.key))
			}
		}
		return cells
	}
	fresh := make([]*cell[T], 0, e.come)
	for _, t := range e.touched {
		if come, _ := t.turn(); come > 0 {
			fresh = append(fresh, t.cell)
		}
	}
	byKey := func(a, b *cell[T]) int { return cmp.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(fresh, byKey) {
		slices.SortFunc(fresh, byKey)
	}
	return build(p, e.merge(fresh), true)
}

// merge is the cells of the last state that stay, and the fresh ones.
func (e *edit[T]) merge(fresh []*cell[T]) []*cell[T] {
	all := make([]*cell[T], 0, e.last.cells.n+e.come-e.gone)
	e.last.cells.from("", func(cells []*cell[T]) bool {
		for _, c := range cells {
			for len(fresh) > 0 && fresh[0].key < c.key {
				all = append(all, fresh[0])
				fresh = fresh[1:]
			}
			if !c.head.Load().gone() {
				all = append(all, c)
			}
		}
		return true
	})
	return append(all, fresh...)
}

// tell closes the channels of those who wait for something that has changed.
func (e *edit[T]) tell(b *books[T]) {
	w := &e.store.watchers
	if w.count.Load() > 0 {
		w.mu.Lock()
		for _, t := range e.touched {
			w.touch(string(t.cell.key))
		}
		if e.come+e.gone > 0 {
			w.resized()
		}
		w.mu.Unlock()
	}
	for _, x := range b.indexes {
		if w := &x.watchers; w.count.Load() > 0 {
			w.mu.Lock()
			for _, t := range e.left[x.index] {
				w.touch(t.value)
			}
			for _, t := range e.touched {
				t.cell.term(x.slot).each(func(t *term) { w.touch(t.value) })
			}
			w.mu.Unlock()
		}
	}
}

// note remembers that an object could not be taken by an index.
func (e *edit[T]) note(at place, err error) {
	if e.failed == nil {
		e.failed = map[place]error{}
	}
	e.failed[at] = err
}

// objectErrors lists failures in a fixed order, so that the same writes give the
// same text.
func objectErrors(failed map[place]error) error {
	if len(failed) == 0 {
		return nil
	}
	places := slices.SortedFunc(maps.Keys(failed), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
	})
	now := time.Now()
	bad := make(tarn.ObjectErrors, len(places))
	for i, at := range places {
		bad[i] = tarn.BadObject{Key: at.key, Err: &IndexError{Index: at.index, Err: failed[at]}, Since: now}
	}
	return bad
}
