package memory

// A state is pinned while readers are counted at it: what it shows is kept.
//
// A reader counts itself at the state it has loaded, and takes another one if that
// is no longer the newest by then. A writer publishes its state, and then reads the
// count of the last one. So either the writer sees the reader, or the reader sees
// the new state; neither waits for the other, and a state whose count was zero when
// it was replaced is never read again.
//
// Why not one list of all pins: each read would have to lock it, twice, and a
// reader that is preempted with the lock makes the others wait. Why not leave it to
// the garbage collector, with each state holding what the next one replaced: then
// an old snapshot holds all versions since.

// pin takes the newest state and keeps what it shows until unpin.
func (s *Store[T]) pin() *state[T] {
	for {
		st := s.current.Load()
		if st.readers.Add(1) == 1 {
			s.pinned.Add(1)
		}
		s.gate.pass()
		if s.current.Load() == st {
			return st
		}
		s.unpin(st)
	}
}

func (s *Store[T]) unpin(st *state[T]) {
	if st.readers.Add(-1) == 0 && s.pinned.Add(-1) == 0 {
		s.releaseStale()
	}
}

// releaseStale releases what nobody can see, unless a writer is active, which does
// the same at its end, or there is so little that the next writer may do it. It
// works in small portions: a writer that arrives meanwhile waits for one of them.
func (s *Store[T]) releaseStale() {
	for more := s.stale.size.Load() > minStale; more && s.pinned.Load() == 0 && s.writing.TryLock(); {
		more = s.stale.drain(minStale)
		s.stale.measure(s.current.Load())
		s.writing.Unlock()
	}
}
