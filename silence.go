package tarn

import (
	"context"
	"sync/atomic"
	"time"
)

// ear ends a wait for words that do not come.
//
// Its context is for the one who waits; it ends with [ErrSilent] as cause when
// nothing was heard for longer than the limit. Hearing costs an atomic store:
// the timer is not touched, the goroutine behind it looks at the clock only when
// the limit could have passed.
type ear struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	clock  Clock
	// last is when something was heard, as the time since base: an instant by
	// itself would lose what keeps it right when the system's clock is set.
	base time.Time
	last atomic.Int64
	done chan struct{}
}

// listen starts to wait. Without a positive limit it never falls silent.
func listen(ctx context.Context, clock Clock, limit time.Duration) *ear {
	e := &ear{clock: clock, base: clock.Now(), done: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	e.heard()
	if limit <= 0 {
		close(e.done)
		return e
	}
	go func() {
		defer close(e.done)
		timer := clock.NewTimer(limit)
		defer timer.Stop()
		for {
			select {
			case <-e.ctx.Done():
				return
			case <-timer.C():
			}
			quiet := clock.Now().Sub(e.base) - time.Duration(e.last.Load())
			if quiet >= limit {
				e.cancel(ErrSilent)
				return
			}
			timer.Reset(limit - quiet)
		}
	}()
	return e
}

func (e *ear) heard() { e.last.Store(int64(e.clock.Now().Sub(e.base))) }

func (e *ear) silent() bool { return context.Cause(e.ctx) == ErrSilent }

// interrupted says that the wait was ended because an object is to be repaired.
func (e *ear) interrupted() bool { return context.Cause(e.ctx) == errDamaged }

// close ends the wait and waits for the goroutine.
func (e *ear) close() {
	e.cancel(nil)
	<-e.done
}
