package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
)

// edit is one write, from the first change to its publication. Its versions carry
// the number of a state that nobody has yet, so readers skip them. When everything
// is in place, one store of a pointer publishes the state, with its version and
// indexes.
type edit[T any] struct {
	store *Store[T]
	last  *state[T]
	seq   uint64
	// touched has each cell that was written, once.
	touched []touch[T]
	keys    keyTexts
	// added and removed count the objects that the edit adds and deletes.
	added, removed int
	// inPlace says that new readers wait at the gate.
	inPlace bool
	// left holds, for each index, the terms that cells have left.
	left map[*index[T]][]*term
	// failed holds the errors of index functions.
	failed map[indexedKey]error
}

// touch is a cell that an edit has written; fresh if the edit made it.
type touch[T any] struct {
	cell  *cell[T]
	fresh bool
}

// indexedKey is one key in one index.
type indexedKey struct {
	key   tarn.Key
	index string
}

// begin starts an edit. The caller has locked writing.
func (s *Store[T]) begin() *edit[T] {
	last := s.current.Load()
	s.edit = edit[T]{store: s, last: last, seq: last.seq + 1, touched: s.edit.touched[:0]}
	return &s.edit
}

// expect reserves memory for so many writes.
func (e *edit[T]) expect(writes int) {
	if writes > maxTouched {
		e.touched = slices.Grow(e.touched, writes)
		e.keys.many = true
	}
	e.store.table.reserve(writes)
}

func (e *edit[T]) put(key tarn.Key, object T) {
	v := &version[T]{object: object, stamp: e.seq << 1}
	hash := e.store.table.hash(key)
	c := e.store.table.seek(key, hash)
	if c == nil {
		c = &cell[T]{key: e.keys.clone(key)}
		v.before.Store(&e.store.nothing)
		c.head.Store(v)
		e.store.table.insert(c, hash)
		e.touched = append(e.touched, touch[T]{c, true})
		return
	}
	e.push(c, v)
}

func (e *edit[T]) remove(key tarn.Key) {
	if c := e.store.table.find(key); c != nil {
		e.markDeleted(c)
	}
}

// markDeleted deletes a cell's object.
func (e *edit[T]) markDeleted(c *cell[T]) {
	if !c.head.Load().deleted() {
		e.push(c, &version[T]{stamp: e.seq<<1 | 1})
	}
}

// push makes v the newest version of a cell.
func (e *edit[T]) push(c *cell[T], v *version[T]) {
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

// deleteUnwritten deletes every object that the edit has not written.
func (e *edit[T]) deleteUnwritten() {
	e.last.cells.from("", func(cells []*cell[T]) bool {
		for _, c := range cells {
			if c.head.Load().seq() != e.seq {
				e.markDeleted(c)
			}
		}
		return true
	})
}

// abandon reverts everything.
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

// publish makes the edit the newest state, releases what it replaced and notifies
// watchers.
func (e *edit[T]) publish(v tarn.Version) error {
	s := e.store
	next := &state[T]{seq: e.seq, version: v, writing: &e.store.writing, indexSet: e.indexSet()}
	s.current.Store(next)
	if e.inPlace {
		s.gate.open()
	}
	for _, t := range e.touched {
		if t.cell.head.Load().deleted() {
			s.table.remove(t.cell)
		}
	}
	s.stale.release(e.last, next, e.touched)
	e.notify(next.indexSet)
	err := objectErrors(e.failed)
	clear(e.touched)
	if s.edit = (edit[T]{touched: e.touched[:0]}); cap(e.touched) > maxTouched {
		s.edit.touched = nil
	}
	return err
}

// maxTouched is how much memory for touches is kept from one edit to the next.
const maxTouched = 64

// maxInPlace is how many objects may be written while new readers wait. A larger
// write copies what readers have.
const maxInPlace = 4

// indexSet returns the trees of the new state: the old ones, if no object was
// added, deleted or moved in an index.
func (e *edit[T]) indexSet() *indexSet[T] {
	for _, t := range e.touched {
		come, gone := t.delta()
		e.added, e.removed = e.added+come, e.removed+gone
	}
	indexes := e.last.indexes
	if len(e.store.building) > 0 {
		indexes = slices.Concat(indexes, e.store.building)
	}
	p := editor{seq: e.seq, clean: e.last.seq}
	if len(e.touched) >= minRebuild && len(e.touched)*rebuildIndex > e.last.cells.n {
		return e.rebuild(p, indexes)
	}
	moves := e.moves(indexes)
	if e.added+e.removed+len(moves) == 0 {
		return e.last.indexSet
	}
	if len(e.touched) <= maxInPlace {
		e.inPlace = true
		p.clean = e.store.close(e.last)
	}
	return &indexSet[T]{cells: e.cells(p), indexes: e.applyMoves(p, indexes, moves)}
}

// delta says whether the object of a cell was added or deleted.
func (t touch[T]) delta() (come, gone int) {
	switch ended := t.cell.head.Load().deleted(); {
	case t.fresh && !ended:
		return 1, 0
	case !t.fresh && ended:
		return 0, 1
	}
	return 0, 0
}

// rebuildCells and rebuildIndex decide between rebuilding a tree and changing it:
// rebuilding is cheaper if the tree has at most so many objects for each one that
// moves.
const (
	rebuildCells = 64
	rebuildIndex = 16
	minRebuild   = 32
)

// cells is the tree of all cells after the edit.
func (e *edit[T]) cells(p editor) tree[*cell[T]] {
	cells := e.last.cells
	if moves := e.added + e.removed; moves < minRebuild || moves*rebuildCells < cells.n {
		for _, t := range e.touched {
			switch come, gone := t.delta(); {
			case come > 0:
				cells.set(p, t.cell)
			case gone > 0:
				cells.delete(p, string(t.cell.key))
			}
		}
		return cells
	}
	fresh := make([]*cell[T], 0, e.added)
	for _, t := range e.touched {
		if come, _ := t.delta(); come > 0 {
			fresh = append(fresh, t.cell)
		}
	}
	byKey := func(a, b *cell[T]) int { return cmp.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(fresh, byKey) {
		slices.SortFunc(fresh, byKey)
	}
	return build(p, e.merge(fresh), true)
}

// merge returns the remaining cells of the last state and the new ones.
func (e *edit[T]) merge(fresh []*cell[T]) []*cell[T] {
	all := make([]*cell[T], 0, e.last.cells.n+e.added-e.removed)
	e.last.cells.from("", func(cells []*cell[T]) bool {
		for _, c := range cells {
			for len(fresh) > 0 && fresh[0].key < c.key {
				all = append(all, fresh[0])
				fresh = fresh[1:]
			}
			if !c.head.Load().deleted() {
				all = append(all, c)
			}
		}
		return true
	})
	return append(all, fresh...)
}

// notify closes the channels of watchers for what has changed.
func (e *edit[T]) notify(b *indexSet[T]) {
	w := &e.store.watchers
	if w.count.Load() > 0 {
		w.mu.Lock()
		for _, t := range e.touched {
			w.touch(string(t.cell.key))
		}
		if e.added+e.removed > 0 {
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

// fail records that an index could not accept an object.
func (e *edit[T]) fail(at indexedKey, err error) {
	if e.failed == nil {
		e.failed = map[indexedKey]error{}
	}
	e.failed[at] = err
}

// objectErrors lists failures in a fixed order, so that the same writes give the
// same text.
func objectErrors(failed map[indexedKey]error) error {
	if len(failed) == 0 {
		return nil
	}
	places := slices.SortedFunc(maps.Keys(failed), func(a, b indexedKey) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
	})
	now := time.Now()
	bad := make(tarn.ObjectErrors, len(places))
	for i, at := range places {
		bad[i] = tarn.BadObject{Key: at.key, Err: &IndexError{Index: at.index, Err: failed[at]}, Since: now}
	}
	return bad
}
