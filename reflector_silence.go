package tarn

import (
	"context"
	"sync/atomic"
	"time"
)

// silenceTimer ends a wait for a source that sends nothing.
//
// Its context ends with [ErrSilent] as cause when there was no reset for longer than
// the limit. A reset costs an atomic store: it does not touch the timer, and the
// goroutine reads the clock only when the limit could have passed.
type silenceTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	clock  Clock
	// last is the time of the last reset since base. A wall-clock time alone would
	// lose the monotonic reading, and be wrong when the system's clock is set.
	base time.Time
	last atomic.Int64
	done chan struct{}
}

// newSilenceTimer starts the timer. Without a positive limit it never expires.
func newSilenceTimer(ctx context.Context, clock Clock, limit time.Duration) *silenceTimer {
	s := &silenceTimer{clock: clock, base: clock.Now(), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.reset()
	if limit <= 0 {
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		timer := clock.NewTimer(limit)
		defer timer.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-timer.C():
			}
			idle := clock.Now().Sub(s.base) - time.Duration(s.last.Load())
			if idle >= limit {
				s.cancel(ErrSilent)
				return
			}
			timer.Reset(limit - idle)
		}
	}()
	return s
}

func (s *silenceTimer) reset() { s.last.Store(int64(s.clock.Now().Sub(s.base))) }

func (s *silenceTimer) expired() bool { return context.Cause(s.ctx) == ErrSilent }

// interrupted reports whether an object to repair ended the wait.
func (s *silenceTimer) interrupted() bool { return context.Cause(s.ctx) == errDamaged }

// close ends the wait and waits for the goroutine.
func (s *silenceTimer) close() {
	s.cancel(nil)
	<-s.done
}
