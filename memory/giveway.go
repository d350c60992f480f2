package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// writeLock is held by the one who writes. It counts how often it was taken and left,
// so that a reader can see whether one and the same write goes on for long.
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

// breath is after how many leaves a reader looks up from a walk: some thousand
// objects, which takes several times as long as the write of one.
const breath = 16

// leaves walks the leaves of the objects from key on, and gives way to a writer that
// is in the middle of a write and gets no further.
//
// No lock makes it wait. But while the collector runs, who allocates has to help it,
// and goes behind all others that want a processor when there is nothing to help
// with; each of them may then walk for ten milliseconds, and the copy grows old
// meanwhile. A reader that passes its processor on once in a while costs itself less
// than a microsecond.
func (st *state[T]) leaves(key string, yield func(leaf *node[*cell[T]], first int) bool) {
	n, seen := 0, uint64(0)
	st.cells.leaves(key, func(leaf *node[*cell[T]], first int) bool {
		if n++; n%breath == 0 {
			seen = st.writing.giveWay(seen)
		}
		return yield(leaf, first)
	})
}

// giveWay passes the processor on if the write that was seen the last time is still
// going on. It returns what it saw, for the next time.
func (l *writeLock) giveWay(seen uint64) uint64 {
	now := l.steps.Load()
	if now%2 == 1 && now == seen {
		runtime.Gosched()
	}
	return now
}
