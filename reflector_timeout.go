package tarn

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A connection can stall while a list is read or a watch is opened, as it can in
// mid-stream; the two functions below end such waits.

// errNoAnswer says that a request timed out.
var errNoAnswer = errors.New("no answer")

// list asks the source for a page, for at most the given time.
func (r *Reflector[T]) list(ctx context.Context, q ListQuery, limit time.Duration) (Page[T], error) {
	return r.listWithin(ctx, limit, func(ctx context.Context) (Page[T], error) { return r.source.List(ctx, q) })
}

func (r *Reflector[T]) listWithin(ctx context.Context, limit time.Duration, list func(context.Context) (Page[T], error)) (Page[T], error) {
	timer := newSilenceTimer(ctx, r.opts.Clock, limit)
	defer timer.close()
	page, err := list(timer.ctx)
	if err != nil && timer.expired() {
		return page, fmt.Errorf("%w to a list within %s", errNoAnswer, limit)
	}
	return page, err
}

// watch opens a stream. The time to open it is limited, its life is not.
//
// The limit is that of silence and not a short one, because some proxies forward the
// head of a response only with the first event. A stream of initial events has its first
// event soon, and can be replaced by a list. The limit is measured in real time, since a
// timer of the reflector's clock cannot end a context that outlives it.
func (r *Reflector[T]) watch(ctx context.Context, q WatchQuery) (Stream[T], error) {
	limit := r.opts.SilenceLimit
	if limit <= 0 {
		limit = r.opts.ListTimeout
	}
	if deadline := r.opts.WatchListDeadline; q.Initial && deadline > 0 && (limit <= 0 || deadline < limit) {
		limit = deadline
	}
	if limit <= 0 {
		return r.source.Watch(ctx, q)
	}
	life, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(ErrSilent) })
	stream, err := r.source.Watch(life, q)
	if timer.Stop() && err == nil {
		return &cancelledStream[T]{stream, cancel}, nil
	}
	expired := err == nil || context.Cause(life) == ErrSilent
	if err == nil {
		stream.Close()
	}
	cancel(nil)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case expired && q.Initial:
		return nil, fmt.Errorf("%w: there was no answer within %s", errNoEnd, limit)
	case expired:
		return nil, fmt.Errorf("%w to a watch within %s", errNoAnswer, limit)
	default:
		return nil, err
	}
}

// cancelledStream is a stream that cancels its context when it is closed.
type cancelledStream[T any] struct {
	Stream[T]
	cancel context.CancelCauseFunc
}

func (s *cancelledStream[T]) Close() {
	s.Stream.Close()
	s.cancel(nil)
}
