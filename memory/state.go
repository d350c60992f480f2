package memory

import (
	"fmt"

	"github.com/tarnproject/tarn"
)

// state is all that readers see, at one moment. It is never changed.
type state[T any] struct {
	seq     uint64
	version tarn.Version
	*books[T]
}

// books are the ordered parts of a state. They are one piece because most writes
// leave them as they are.
type books[T any] struct {
	cells   tree[*cell[T]]
	indexes []*shelf[T]
}

// shelf is an index as a state has it.
type shelf[T any] struct {
	*index[T]
	postings tree[posting[T]]
	// entries counts cells over all values.
	entries int
}

// shelf finds an index by name.
func (b *books[T]) shelf(name string) (*shelf[T], error) {
	for _, x := range b.indexes {
		if x.name == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name)
}

// pin takes the newest state and keeps what it shows until unpin.
func (s *Store[T]) pin() *state[T] {
	for {
		st := s.current.Load()
		s.pins.add(st.seq)
		s.gate.pass()
		if s.current.Load() == st {
			return st
		}
		s.unpin(st)
	}
}

func (s *Store[T]) unpin(st *state[T]) {
	if s.pins.remove(st.seq) {
		s.tidy()
	}
}

// tidy lets go of what nobody can see, unless a writer is at work, which does
// that at its end, or there is so little of it that the next writer may.
func (s *Store[T]) tidy() {
	for s.stale.size.Load() > minStale && s.pins.count.Load() == 0 && s.writing.TryLock() {
		s.stale.sweep(&s.pins)
		s.writing.Unlock()
	}
}
