package tarn

import (
	"context"
	"sync/atomic"
	"time"
)

// silenceTimer ends a wait for a source that says nothing.
//
// Its context is for the one who waits; it ends with [ErrSilent] as cause when
// nothing came for longer than the limit. What comes costs an atomic store:
// the timer is not touched, the goroutine behind it looks at the clock only when
// the limit could have passed.
type silenceTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	clock  Clock
	// last is when something was heard, as the time since base: an instant by
	// itself would lose what keeps it right when the system's clock is set.
	base time.Time
	last atomic.Int64
	done chan struct{}
}

// newSilenceTimer starts to wait. Without a positive limit it never ends the wait.
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

// interrupted says that the wait was ended because an object is to be repaired.
func (s *silenceTimer) interrupted() bool { return context.Cause(s.ctx) == errDamaged }

// close ends the wait and waits for the goroutine.
func (s *silenceTimer) close() {
	s.cancel(nil)
	<-s.done
}
