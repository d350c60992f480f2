package tarn

import "time"

const (
	// maxRestarts is how many times in a row the waits may start over.
	maxRestarts = 5
	// restartEvery is how long it takes until they may once more.
	restartEvery = 10 * time.Minute
)

// waits returns the wait before each new attempt. The waits grow with failures, and
// start over when the source has answered: a reflector that was cut off for an hour
// must not wait another minute before it reads what it missed, and a second rewind must
// be repaired as fast as the first.
//
// A source can answer and be of no use all the same: it lists, and refuses every watch.
// Waits that started over each time would list it every second for ever. So they start
// over at most five times in a row, and once more for every ten minutes.
type waits struct {
	clock  Clock
	series func() func() time.Duration
	next   func() time.Duration
	// failing says that the source could not be read, since it last was.
	failing bool
	// used is the number of restarts, less one for every restartEvery since; counted is
	// the time up to which that was subtracted.
	used    int
	counted time.Time
}

// delay returns the next wait, or the one that the source asked for, if that is longer.
func (w *waits) delay(err error) time.Duration {
	if w.next == nil {
		w.next = w.series()
	}
	return max(w.next(), RetryAfter(err))
}

// readAgain records that a whole state was read: after failures to read the source, the
// waits start over. If only watches fail, they grow.
func (w *waits) readAgain() {
	if w.failing {
		w.failing = false
		w.restart()
	}
}

// restart makes the next wait the first of a new series.
func (w *waits) restart() {
	now := w.clock.Now()
	for w.used > 0 && now.Sub(w.counted) >= restartEvery {
		w.used--
		w.counted = w.counted.Add(restartEvery)
	}
	if w.used == 0 {
		w.counted = now
	}
	if w.used < maxRestarts {
		w.used++
		w.next = nil
	}
}
