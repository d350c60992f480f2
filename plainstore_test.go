package tarn

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
)

// plainStore is the simplest ReadStore there is. Walks go by key, so that what
// subscribers see is the same in every run.
type plainStore struct {
	mu      sync.Mutex
	objects map[Key]*entry
	version Version
	// refuse, if set, is asked before changes are made. A refusal that names
	// objects does not keep them out.
	refuse func([]Change[*entry]) error
}

var _ ReadStore[*entry] = (*plainStore)(nil)

func newPlainStore() *plainStore { return &plainStore{objects: map[Key]*entry{}} }

func (s *plainStore) Replace(items []Item[*entry], at Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.objects)
	for _, i := range items {
		s.objects[i.Key] = i.Object
	}
	s.version = at.Version
	return nil
}

func (s *plainStore) Apply(changes []Change[*entry], at Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.refuse != nil {
		err = s.refuse(changes)
	}
	if _, some := errors.AsType[ObjectErrors](err); err != nil && !some {
		return err
	}
	for _, c := range changes {
		if c.Type == Delete {
			delete(s.objects, c.Key)
		} else {
			s.objects[c.Key] = c.Object
		}
	}
	s.version = at.Version
	return err
}

func (s *plainStore) Get(key Key) (*entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.objects[key]
	return e, ok
}

func (s *plainStore) All() iter.Seq2[Key, *entry] {
	state := s.state()
	return func(yield func(Key, *entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			if !yield(key, state[key]) {
				return
			}
		}
	}
}

func (s *plainStore) state() map[Key]*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

func (s *plainStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

func (s *plainStore) Version() Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}
