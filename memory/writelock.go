package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// writeLock is held by the writer. It counts locks and unlocks, so that a reader
// can see whether the same write is still running.
type writeLock struct {
	sync.Mutex
	steps atomic.Uint64 // odd while it is held
}

func (l *writeLock) Lock() {
	l.Mutex.Lock()
	l.steps.Add(1)
}

func (l *writeLock) TryLock() bool {
	if !l.Mutex.TryLock() {
		return false
	}
	l.steps.Add(1)
	return true
}

func (l *writeLock) Unlock() {
	l.steps.Add(1)
	l.Mutex.Unlock()
}

// yieldEvery is after how many leaves a walk checks for a stalled writer: some
// thousand objects, which takes several times as long as the write of one.
const yieldEvery = 16

// leaves walks the leaves of the objects from key on, and yields the processor to a
// writer that is stalled within a write.
//
// No lock makes that writer wait. But while the garbage collector runs, a goroutine
// that allocates has to assist it, and is queued behind all runnable goroutines
// when there is nothing to assist with. Each of these may then walk for ten
// milliseconds, and the copy becomes stale. A check costs a reader less than a
// microsecond.
func (st *state[T]) leaves(key string, yield func(leaf *node[*cell[T]], first int) bool) {
	n, seen := 0, uint64(0)
	st.cells.leaves(key, func(leaf *node[*cell[T]], first int) bool {
		if n++; n%yieldEvery == 0 {
			seen = st.writing.yield(seen)
		}
		return yield(leaf, first)
	})
}

// yield yields the processor if the write of the last check is still running. It
// returns the count for the next check.
func (l *writeLock) yield(seen uint64) uint64 {
	now := l.steps.Load()
	if now%2 == 1 && now == seen {
		runtime.Gosched()
	}
	return now
}
