package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// AddIndexes adds indexes by name, each with the function that gives the values
// by which an object is to be found; see [IndexFunc] and AddIndex.
//
// A name that is taken, or a function that is nil, makes it fail with nothing
// added. A [tarn.ObjectErrors] means that the indexes were added but could not
// take the objects it names.
func (s *Store[T]) AddIndexes(functions map[string]func(T) ([]string, error)) error {
	indexes := make(map[string]Index[T], len(functions))
	for name, function := range functions {
		indexes[name] = IndexFunc(function)
	}
	return s.addIndexes(indexes)
}

// AddIndex adds an index over what the store holds and will hold. Reads and
// writes go on while it is built; it can be used when AddIndex returns. The
// error is like that of AddIndexes.
func (s *Store[T]) AddIndex(name string, x Index[T]) error {
	return s.addIndexes(map[string]Index[T]{name: x})
}

func (s *Store[T]) addIndexes(indexes map[string]Index[T]) error {
	names := slices.Sorted(maps.Keys(indexes))
	for _, name := range names {
		x := indexes[name]
		if x.err == nil && x.function == nil && x.paths == nil {
			x.err = errors.New("is empty: make it by IndexFunc or IndexPath")
		}
		if x.err != nil {
			return fmt.Errorf("index %q %w; no index was added", name, x.err)
		}
	}
	building, err := s.announce(names, indexes)
	if err != nil {
		return err
	}
	failed := map[place]error{}
	for _, x := range building {
		s.fill(x, failed)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.building = slices.DeleteFunc(s.building, func(x *shelf[T]) bool { return slices.Contains(building, x) })
	s.reshelve(func(public []*shelf[T]) []*shelf[T] { return slices.Concat(public, building) })
	return objectErrors(failed)
}

// announce makes the indexes known to writers, empty.
func (s *Store[T]) announce(names []string, indexes map[string]Index[T]) ([]*shelf[T], error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	taken := map[string]struct{}{}
	for _, x := range slices.Concat(s.current.Load().indexes, s.building) {
		if _, ok := indexes[x.name]; ok {
			taken[x.name] = struct{}{}
		}
	}
	if len(taken) > 0 {
		return nil, fmt.Errorf("indexer conflict: %v", taken)
	}
	var building []*shelf[T]
	for _, name := range names {
		building = append(building, &shelf[T]{index: &index[T]{Index: indexes[name], name: name, slot: s.takeSlot()}})
	}
	s.building = append(s.building, building...)
	return building, nil
}

func (s *Store[T]) takeSlot() int {
	slot := slices.Index(s.used, false)
	if slot < 0 {
		slot = len(s.used)
		s.used = append(s.used, false)
	}
	s.used[slot] = true
	return slot
}

// reshelve publishes the same content with other indexes. The caller has locked
// writing.
func (s *Store[T]) reshelve(change func([]*shelf[T]) []*shelf[T]) {
	last := s.current.Load()
	next := &state[T]{seq: last.seq + 1, version: last.version, writing: &s.writing, books: &books[T]{cells: last.cells, indexes: change(last.indexes)}}
	s.current.Store(next)
	s.stale.settle(last, next, nil)
}

// fillChunk is how many objects are put into a new index before writers get
// their turn.
const fillChunk = 128

// fill puts what the store holds into an index. What is written meanwhile is put
// there by the writer, so a cell that has another version than the one which was
// looked at is left alone.
func (s *Store[T]) fill(x *shelf[T], failed map[place]error) {
	st := s.pin()
	defer s.unpin(st)
	reader := index[T]{Index: x.Index} // buffers of its own
	versions := make([]*version[T], fillChunk)
	values := make([][]string, fillChunk)
	st.cells.from("", func(cells []*cell[T]) bool {
		for chunk := range slices.Chunk(cells, fillChunk) {
			for i, c := range chunk {
				versions[i] = c.at(st.seq)
				found, err := reader.valuesOf(versions[i].object)
				if err != nil {
					failed[place{c.key, x.name}] = err
				}
				values[i] = values[i][:0]
				for _, value := range found {
					values[i] = append(values[i], x.keep(value))
				}
			}
			s.place(x, chunk, versions, values, failed)
		}
		return true
	})
}

func (s *Store[T]) place(x *shelf[T], cells []*cell[T], versions []*version[T], values [][]string, failed map[place]error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for i, c := range cells {
		if c.head.Load() == versions[i] {
			x.move(pen{seq: 1}, c, values[i])
		} else {
			delete(failed, place{c.key, x.name}) // its writer was told
		}
	}
}

// DropIndex takes an index away. Snapshots that have it keep it.
func (s *Store[T]) DropIndex(name string) error {
	s.writing.Lock()
	st := s.current.Load()
	x, err := st.shelf(name)
	if err != nil {
		s.writing.Unlock()
		return err
	}
	s.reshelve(func(public []*shelf[T]) []*shelf[T] {
		return slices.DeleteFunc(slices.Clone(public), func(y *shelf[T]) bool { return y.name == name })
	})
	s.writing.Unlock()
	x.watchers.finish()
	s.vacate(x.slot)
	return nil
}

// vacate makes a slot usable again: cells must not remember terms in it.
func (s *Store[T]) vacate(slot int) {
	st := s.pin()
	defer s.unpin(st)
	st.cells.from("", func(cells []*cell[T]) bool {
		s.writing.Lock()
		defer s.writing.Unlock()
		for _, c := range cells {
			c.setTerm(slot, nil)
		}
		return true
	})
	s.writing.Lock()
	defer s.writing.Unlock()
	s.used[slot] = false
}

// IndexFuncs returns the function of every index, in a map of its own. That of
// an index by field paths gives the values as text.
func (s *Store[T]) IndexFuncs() map[string]func(T) ([]string, error) {
	st := s.current.Load()
	functions := make(map[string]func(T) ([]string, error), len(st.indexes))
	for _, x := range st.indexes {
		functions[x.name] = x.function
		if x.function == nil {
			functions[x.name] = x.texts
		}
	}
	return functions
}
