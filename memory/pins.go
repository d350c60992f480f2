package memory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// pins are the states that readers hold. A version that was replaced stays for
// as long as a pinned state shows it, and no longer: a snapshot that is kept for
// a day costs one old version of each object that changed, not every version in
// between.
//
// A reader pins the state it has loaded, and takes another one if meanwhile that
// is no longer the newest. A writer publishes its state, and then looks for
// pins. So either the writer sees the pin, or the reader sees the new state, and
// neither waits for the other.
//
// Why not leave it to the garbage collector, with each state holding what the
// next one replaced: then an old snapshot holds all versions since.
type pins struct {
	count atomic.Int64
	mu    sync.Mutex
	held  []pin // by seq
}

type pin struct {
	seq     uint64
	readers int
}

func (p *pins) add(seq uint64) {
	p.count.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.held) - 1; last >= 0 && p.held[last].seq == seq {
		p.held[last].readers++
		return
	}
	i, found := p.find(seq)
	if !found {
		p.held = slices.Insert(p.held, i, pin{seq: seq})
	}
	p.held[i].readers++
}

// remove takes one pin away and says whether it was the last of all.
func (p *pins) remove(seq uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, found := p.find(seq)
	if !found {
		return false
	}
	if p.held[i].readers--; p.held[i].readers == 0 {
		p.held = slices.Delete(p.held, i, i+1)
	}
	return p.count.Add(-1) == 0
}

func (p *pins) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(p.held, seq, func(held pin, seq uint64) int {
		switch {
		case held.seq < seq:
			return -1
		case held.seq > seq:
			return 1
		}
		return 0
	})
}

// newest is the newest state that is held, 0 for none. It is not told if a
// reader comes or goes at this moment.
func (p *pins) newest() (seq uint64, ok bool) {
	if p.count.Load() == 0 {
		return 0, true
	}
	if !p.mu.TryLock() {
		return 0, false
	}
	defer p.mu.Unlock()
	if len(p.held) == 0 {
		return 0, true
	}
	return p.held[len(p.held)-1].seq, true
}

// between says whether a state from first up to but not including end is held.
// The caller has locked mu.
func (p *pins) between(first, end uint64) bool {
	i, _ := p.find(first)
	return i < len(p.held) && p.held[i].seq < end
}

// stale is the cells that have versions which only pinned states show. It is the
// writer's.
type stale[T any] struct {
	cells map[*cell[T]]struct{}
	// size mirrors len(cells) for readers that leave; limit is the size at which
	// a writer looks for what can go although readers are there.
	size  atomic.Int64
	limit int
}

const minStale = 64

// prune lets go of the versions of a cell that nobody can see; the newest one
// must be published. It says whether any old one is left, or may be: if a reader
// comes or goes at this moment, it is not waited for.
func prune[T any](p *pins, c *cell[T]) bool {
	v := c.head.Load()
	if v.before.Load() == nil {
		return false
	}
	if p.count.Load() == 0 {
		v.before.Store(nil)
		return false
	}
	if !p.mu.TryLock() {
		return true
	}
	defer p.mu.Unlock()
	left := false
	for old := v.before.Load(); old != nil; old = old.before.Load() {
		if old.stamp != nothing && p.between(old.seq(), v.seq()) {
			left = true
			v = old
			continue
		}
		v.before.Store(old.before.Load())
	}
	return left
}

// settle prunes what a write has touched, and now and then what earlier ones
// left.
func (s *stale[T]) settle(p *pins, touched []touch[T]) {
	for i := range touched {
		if c := touched[i].cell; prune(p, c) {
			if s.cells == nil {
				s.cells, s.limit = map[*cell[T]]struct{}{}, minStale
			}
			s.cells[c] = struct{}{}
		}
	}
	if len(s.cells) > 0 && (p.count.Load() == 0 || len(s.cells) > s.limit) {
		s.sweep(p)
	}
	s.size.Store(int64(len(s.cells)))
}

func (s *stale[T]) sweep(p *pins) {
	for c := range s.cells {
		if !prune(p, c) {
			delete(s.cells, c)
		}
	}
	s.limit = max(minStale, 2*len(s.cells))
	if len(s.cells) == 0 {
		s.cells = nil // a map does not shrink
	}
	s.size.Store(int64(len(s.cells)))
}
