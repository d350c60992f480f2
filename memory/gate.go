package memory

import (
	"sync"
	"sync/atomic"
)

// gate lets a writer change the nodes of a tree in place, which is several times
// cheaper than copying them, as long as no reader has them.
//
// The writer closes the gate and then reads which states are pinned; a reader pins
// its state and then passes the gate. So either the writer sees the pin, and copies
// the nodes of that state, or the reader waits at the gate, for the time it takes
// to write an object. The writer does not wait for readers that have passed.
type gate struct {
	mu     sync.Mutex
	closed atomic.Bool
}

// close stops new readers, and returns the newest state that an earlier reader may
// have, 0 for none; last is the newest of all.
func (s *Store[T]) close(last *state[T]) uint64 {
	s.gate.mu.Lock()
	s.gate.closed.Store(true)
	if last.readers.Load() > 0 {
		return last.seq
	}
	return s.stale.newest(0)
}

func (g *gate) open() {
	g.closed.Store(false)
	g.mu.Unlock()
}

func (g *gate) pass() {
	for g.closed.Load() {
		g.mu.Lock()
		//lint:ignore SA2001 waiting is the purpose
		g.mu.Unlock()
	}
}
