package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// AddIndexes adds indexes by name, each with the function that returns the values
// of an object; see [IndexFunc] and AddIndex.
//
// If a name is taken, or a function is nil, it fails and adds nothing. A
// [tarn.ObjectErrors] means that the indexes were added but could not accept the
// objects it names.
func (s *Store[T]) AddIndexes(functions map[string]func(T) ([]string, error)) error {
	indexes := make(map[string]Index[T], len(functions))
	for name, function := range functions {
		indexes[name] = IndexFunc(function)
	}
	return s.addIndexes(indexes)
}

// AddIndex adds an index over the present and future objects of the store. Reads
// and writes continue while it is built; it can be used when AddIndex returns. The
// error is like that of AddIndexes.
func (s *Store[T]) AddIndex(name string, x Index[T]) error {
	return s.addIndexes(map[string]Index[T]{name: x})
}

func (s *Store[T]) addIndexes(indexes map[string]Index[T]) error {
	names := slices.Sorted(maps.Keys(indexes))
	for _, name := range names {
		x := indexes[name]
		if x.err == nil && x.function == nil && x.paths == nil {
			x.err = errors.New("is empty: make it with IndexFunc or IndexPath")
		}
		if x.err != nil {
			return fmt.Errorf("index %q %w; no index was added", name, x.err)
		}
	}
	building, err := s.register(names, indexes)
	if err != nil {
		return err
	}
	failed := map[indexedKey]error{}
	for _, x := range building {
		s.fill(x, failed)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.building = slices.DeleteFunc(s.building, func(x *indexState[T]) bool { return slices.Contains(building, x) })
	s.publishIndexes(func(public []*indexState[T]) []*indexState[T] { return slices.Concat(public, building) })
	return objectErrors(failed)
}

// register makes the empty indexes known to writers.
func (s *Store[T]) register(names []string, indexes map[string]Index[T]) ([]*indexState[T], error) {
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
	var building []*indexState[T]
	for _, name := range names {
		building = append(building, &indexState[T]{index: &index[T]{Index: indexes[name], name: name, slot: s.takeSlot()}})
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

// publishIndexes publishes the same content with other indexes. The caller has
// locked writing.
func (s *Store[T]) publishIndexes(change func([]*indexState[T]) []*indexState[T]) {
	last := s.current.Load()
	next := &state[T]{seq: last.seq + 1, version: last.version, writing: &s.writing, indexSet: &indexSet[T]{cells: last.cells, indexes: change(last.indexes)}}
	s.current.Store(next)
	s.stale.release(last, next, nil)
}

// fillChunk is how many objects are put into a new index before writers may
// continue.
const fillChunk = 128

// fill puts the objects of the store into an index. Concurrent writers put in what
// they write, so fill skips a cell whose version has changed since fill read it.
func (s *Store[T]) fill(x *indexState[T], failed map[indexedKey]error) {
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
					failed[indexedKey{c.key, x.name}] = err
				}
				values[i] = append(values[i][:0], x.keepAll(found)...)
			}
			s.index(x, chunk, versions, values, failed)
		}
		return true
	})
}

func (s *Store[T]) index(x *indexState[T], cells []*cell[T], versions []*version[T], values [][]string, failed map[indexedKey]error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for i, c := range cells {
		if c.head.Load() == versions[i] {
			x.move(editor{seq: 1}, c, values[i])
		} else {
			delete(failed, indexedKey{c.key, x.name}) // its writer has reported it
		}
	}
}

// DropIndex removes an index. Snapshots that have it keep it.
func (s *Store[T]) DropIndex(name string) error {
	s.writing.Lock()
	st := s.current.Load()
	x, err := st.index(name)
	if err != nil {
		s.writing.Unlock()
		return err
	}
	s.publishIndexes(func(public []*indexState[T]) []*indexState[T] {
		return slices.DeleteFunc(slices.Clone(public), func(y *indexState[T]) bool { return y.name == name })
	})
	s.writing.Unlock()
	x.watchers.finish()
	s.freeSlot(x.slot)
	return nil
}

// freeSlot makes a slot usable again: cells must not remember terms in it.
func (s *Store[T]) freeSlot(slot int) {
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

// IndexFuncs returns the function of every index, in a new map. The function of an
// index by field paths returns the values as text.
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
