package tarn

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Backoff is the wait between attempts: Base at first, twice as long each time up
// to Max, and Base again after Reset without a failure. Each wait grows by a random
// part of itself, up to twice the length, so that a thousand replicas that lose the
// same server do not reconnect at once.
type Backoff struct {
	Base, Max, Reset time.Duration
}

// DefaultBackoff is what [Options] without a Delay use.
var DefaultBackoff = Backoff{Base: 800 * time.Millisecond, Max: 30 * time.Second, Reset: 2 * time.Minute}

// Delay returns a function whose every call returns the next wait.
//
// jitter returns a random part of a duration; nil means any part.
func (b Backoff) Delay(clock Clock, jitter func(time.Duration) time.Duration) func() time.Duration {
	if jitter == nil {
		jitter = randomPart
	}
	var (
		mu   sync.Mutex
		next = b.Base
		last time.Time
	)
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now := clock.Now()
		if now.Sub(last) > b.Reset {
			next = b.Base
		}
		last = now
		d := next
		next = min(2*next, b.Max)
		return d + jitter(d)
	}
}

// randomPart returns a random duration of less than d.
func randomPart(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// retryWindow limits how long failures of one kind are retried without a new pass.
// It opens with the first failure and closes after length, or after a minute without
// a failure; the next failure opens another.
type retryWindow struct {
	first, last time.Time
}

const quietMinute = time.Minute

// failed records a failure and reports whether it may be retried.
func (w *retryWindow) failed(now time.Time, length time.Duration) bool {
	if w.first.IsZero() || now.Sub(w.last) >= quietMinute {
		w.first = now
	}
	w.last = now
	if length > 0 && now.Sub(w.first) <= length {
		return true
	}
	*w = retryWindow{}
	return false
}
