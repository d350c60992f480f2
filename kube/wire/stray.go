package wire

import (
	"sync"
	"time"
	"unsafe"
)

// strayWrite is memory of cached objects that a program was found to have written to.
type strayWrite struct {
	// by is the decoder that found it in the state before the one that it decoded, and
	// object the key of that one; nil if it was found in a pool.
	by     any
	object string
	// field is where in the object.
	field string
	// memory is what was written to, if other objects may have it too.
	memory unsafe.Pointer
}

// strayLog has the stray writes of the last minutes, for each [Guard] of a pool to
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
	strayWrite
	// number counts all writes that were ever logged.
	number uint64
	at     time.Time
}

// strayKept is how long a write stays in the log: several times the period of guards.
const strayKept = 2 * time.Minute

func (l *strayLog) add(w strayWrite, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.prune(now)
	l.writes = append(l.writes, loggedWrite{w, l.total, now})
}

// prune drops what has been in the log for long enough.
func (l *strayLog) prune(now time.Time) {
	i := 0
	for i < len(l.writes) && (now.Sub(l.writes[i].at) > strayKept || now.Before(l.writes[i].at.Add(-strayKept))) {
		i++
	}
	if l.writes = l.writes[i:]; len(l.writes) == 0 {
		l.writes = nil
	}
}

// since returns the writes after the given number, and the number of the last one.
func (l *strayLog) since(number uint64, now time.Time) (writes []strayWrite, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune(now)
	for _, w := range l.writes {
		if w.number > number {
			writes = append(writes, w.strayWrite)
		}
	}
	return writes, l.total
}

func (l *strayLog) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
