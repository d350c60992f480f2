package pool

import (
	"sync"
	"time"
	"unsafe"
)

// StrayWrite is a write of a program to memory of cached objects.
type StrayWrite struct {
	// By is the decoder that found the write in the last state of an object, and Object
	// the key of that object. By is nil if the write was found in a pool.
	By     any
	Object string
	// Field is the path of the field in the object.
	Field string
	// Memory is the memory that was written to, if other objects may have it too.
	Memory unsafe.Pointer
}

// strayLog has the stray writes of the last minutes. Each holder of objects reads it, to
// see whether its own objects are affected.
//
// Why not a callback: the goroutine of one decoder would run it for the objects of
// another. The log holds the memory that was written to, so that nothing else can be
// allocated there meanwhile.
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

// strayRetention is how long a write stays in the log: several times the interval
// between two readings.
const strayRetention = 2 * time.Minute

func (l *strayLog) add(w StrayWrite, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.prune(now)
	l.writes = append(l.writes, loggedWrite{w, l.total, now})
}

// prune drops writes that are older than strayRetention.
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
