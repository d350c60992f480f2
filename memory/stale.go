package memory

import (
	"slices"
	"sync/atomic"
)

// stale holds what only readers of replaced states still see. It belongs to the
// writer.
//
// A replaced version stays for as long as a pinned state shows it, and no longer: a
// snapshot that is kept for a day costs one old version of each object that
// changed, not every version in between.
type stale[T any] struct {
	// held are states that were pinned when they were replaced, oldest first. They
	// get no new readers.
	held []*state[T]
	old  []staleVersion[T]
	// size tells finished readers how much there is.
	size atomic.Int64
	// limit is the size at which a writer looks for releasable versions although
	// readers are active, heldLimit the same for held.
	limit, heldLimit int
}

// staleVersion is a version of a cell that states from first up to but not
// including end show. It holds all that decides about its release, because the
// expensive alternative is to visit the cells and find most versions still needed.
type staleVersion[T any] struct {
	cell       *cell[T]
	first, end uint64
}

// minStale is the size below which a release is not worth its cost.
const minStale = 64

// replaced records that a state is no longer the newest.
func (s *stale[T]) replaced(last *state[T]) {
	if last.readers.Load() == 0 {
		return
	}
	s.held = append(s.held, last)
	if len(s.held) > max(s.heldLimit, minStale) {
		s.forget()
		s.heldLimit = 2 * len(s.held)
	}
}

// forget drops the states that nobody holds any more.
func (s *stale[T]) forget() {
	s.held = slices.DeleteFunc(s.held, func(st *state[T]) bool { return st.readers.Load() == 0 })
	if len(s.held) == 0 {
		s.held = nil
	}
}

// release releases the versions that a write has replaced and nobody sees, and now
// and then those of earlier writes.
func (s *stale[T]) release(last, now *state[T], touched []touch[T]) {
	s.replaced(last)
	if len(s.held) > 0 && s.newest(0) == 0 {
		s.held = nil
	}
	for i := range touched {
		s.prune(touched[i].cell)
	}
	switch {
	case len(s.held) == 0 && len(s.old) > 0:
		s.drain(minStale + 2*len(touched))
	case len(s.old) > max(s.limit, minStale):
		s.sweep()
	}
	s.measure(now)
}

// measure updates size. An old state with trees of its own counts as much, because
// they may be large.
func (s *stale[T]) measure(now *state[T]) {
	size := len(s.old)
	if len(s.held) > 0 && s.held[0].indexSet != now.indexSet {
		size += minStale + 1
	}
	s.size.Store(int64(size))
}

// prune handles the version that the newest one of a cell has replaced.
func (s *stale[T]) prune(c *cell[T]) {
	v := c.head.Load()
	old := v.before.Load()
	switch {
	case old == nil:
	case len(s.held) == 0:
		v.before.Store(nil)
	case old.stamp == nothing || s.newest(old.seq()) == 0:
		v.before.Store(old.before.Load())
	default:
		s.old = append(s.old, staleVersion[T]{c, old.seq(), v.seq()})
	}
}

// newest is the newest held state from first on, 0 for none.
func (s *stale[T]) newest(first uint64) uint64 {
	for i := len(s.held) - 1; i >= 0 && s.held[i].seq >= first; i-- {
		if s.held[i].readers.Load() > 0 {
			return s.held[i].seq
		}
	}
	return 0
}

// sweep releases everything that nobody sees.
func (s *stale[T]) sweep() {
	s.forget()
	s.old = slices.DeleteFunc(s.old, func(l staleVersion[T]) bool {
		i, _ := slices.BinarySearchFunc(s.held, l.first, func(st *state[T], first uint64) int {
			if st.seq < first {
				return -1
			}
			return 1
		})
		if i < len(s.held) && s.held[i].seq < l.end {
			return false
		}
		l.drop()
		return true
	})
	s.limit = 2 * len(s.old)
	s.shrink()
}

// drain releases some versions if nobody sees any. It returns true if nobody sees
// any and more are left.
func (s *stale[T]) drain(most int) (more bool) {
	if s.forget(); len(s.held) > 0 {
		return false
	}
	kept := max(0, len(s.old)-most)
	for _, l := range s.old[kept:] {
		l.drop()
	}
	clear(s.old[kept:])
	s.old = s.old[:kept]
	s.limit = 0
	s.shrink()
	return kept > 0
}

// shrink releases memory that was needed for long walks.
func (s *stale[T]) shrink() {
	if len(s.old) == 0 && cap(s.old) > maxTouched {
		s.old = nil
	}
}

// drop removes the version from its cell, if it is still there.
func (l staleVersion[T]) drop() {
	v := l.cell.head.Load()
	for old := v.before.Load(); old != nil && old.seq() >= l.first; v, old = old, old.before.Load() {
		if old.seq() == l.first {
			v.before.Store(old.before.Load())
			return
		}
	}
}
