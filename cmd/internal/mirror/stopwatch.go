package mirror

import (
	"sync"
	"time"
)

// stopwatch measures the longest of several periods, one after the other. One
// goroutine starts and stops it, any may ask.
type stopwatch struct {
	mu    sync.Mutex
	since time.Time // zero while it stands still
	most  time.Duration
}

func (w *stopwatch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
}

func (w *stopwatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.since.IsZero() {
		w.most = max(w.most, time.Since(w.since))
		w.since = time.Time{}
	}
}

// longest is the longest time since the last call, including the period that is running.
func (w *stopwatch) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := w.most
	w.most = 0
	if !w.since.IsZero() {
		most = max(most, time.Since(w.since))
	}
	return most
}
