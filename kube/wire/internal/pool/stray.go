package pool

import (
	"sync"
	"time"
	"unsafe"
)

// StrayWrite is memory of cached objects that a program was found to have written to.
type StrayWrite struct {
	// By is the decoder that found it in the state before the one that it decoded, and
	// object the key of that one; nil if it was found in a pool.
	By     any
	Object string
	// Field is where in the object.
	Field string
	// Memory is what was written to, if other objects may have it too.
	Memory unsafe.Pointer
}

// strayLog has the stray writes of the last minutes, for each [..Guard] of a pool to
// look whether it is concerned.
//
// Why not a function that is called: it would be called by whoever decodes, for
// another one's objects. Memory that was written to is held meanwhile, so that nothing
// else can lie there.
type strayLog struct {
	mu     sync.Mutex
	writes []loggedWrite
	total  uint64
}

type loggedWrite struct {
	StrayWrite
	// number counts all writes that were ever logged.
	number uint64
	at     time.Time
}

// strayRetention is how long a write stays in the log: several times the period of guards.
const strayRetention = 2 * time.Minute

func (l *strayLog) add(w StrayWrite, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.prune(now)
	l.writes = append(l.writes, loggedWrite{w, l.total, now})
}

// prune drops what has been in the log for long enough.
func (l *strayLog) prune(now time.Time) {
	i := 0
	for i < len(l.writes) && (now.Sub(l.writes[i].at) > strayRetention || now.Before(l.writes[i].at.Add(-strayRetention))) {
		i++
	}
	if l.writes = l.writes[i:]; len(l.writes) == 0 {
		l.writes = nil
	}
}

// since returns the writes after the given number, and the number of the last one.
func (l *strayLog) since(number uint64, now time.Time) (writes []StrayWrite, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune(now)
	for _, w := range l.writes {
		if w.number > number {
			writes = append(writes, w.StrayWrite)
		}
	}
	return writes, l.total
}

func (l *strayLog) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
