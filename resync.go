package tarn

import (
	"context"
	"fmt"
)

// resyncing is the resync timer of one pass. It uses a timer and not a ticker,
// so that a resync that takes longer than its period does not follow itself.
type resyncing struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// startResync offers the store's content again every period for as long as the
// pass lasts. If that fails, the pass ends and the next one reads the state
// anew.
func (r *Reflector[T]) startResync(ctx context.Context) resyncing {
	s := resyncing{done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
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
				r.report(ctx, fmt.Errorf("%s: resync: %w", r.opts.Name, err))
				s.cancel()
				return
			}
		}
	}()
	return s
}

func (s resyncing) wait() {
	s.cancel()
	<-s.done
}
