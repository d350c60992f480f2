package tarn

import (
	"context"
	"errors"
	"fmt"
)

// resyncing is the resync timer of one pass. It uses a timer and not a ticker, so
// that there is a pause even after a resync that takes longer than its period.
type resyncing struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// resyncError ends a pass because a resync failed.
type resyncError struct{ err error }

func (e *resyncError) Error() string { return e.err.Error() }
func (e *resyncError) Unwrap() error { return e.err }

// startResync delivers the store's content again every period until the pass ends.
// If that fails, the pass ends and the next one reads the whole state.
func (r *Reflector[T]) startResync(ctx context.Context) resyncing {
	s := resyncing{done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if r.opts.ResyncPeriod <= 0 || r.resync == nil {
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		for pause(s.ctx, r.opts.Clock, r.opts.ResyncPeriod) {
			if r.opts.ShouldResync != nil && !r.opts.ShouldResync() {
				continue
			}
			if err := r.resync(); err != nil {
				s.cancel(&resyncError{fmt.Errorf("%s: resync: %w", r.opts.Name, err)})
				return
			}
		}
	}()
	return s
}

// wait ends the timer and returns the error if a failed resync ended the pass.
func (s resyncing) wait() error {
	s.cancel(nil)
	<-s.done
	if e, ok := errors.AsType[*resyncError](context.Cause(s.ctx)); ok {
		return e
	}
	return nil
}
