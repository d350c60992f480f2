package faults

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tarnproject/tarn"
)

const (
	// readAhead is how many events are taken from the inner stream at once.
	readAhead = 64
	// endlessPause is the time between the rounds of an [Endless] stream.
	endlessPause = time.Second
)

// stream is a watch with faults. Events of the inner stream go through the mutator
// into the outbox. Only when the outbox is empty does the stream read more, or end.
type stream[T any] struct {
	inner     tarn.Stream[T]
	plan      *Plan
	streamEnd *streamEnd
	mutator   *mutator[T]
	out       outbox[T]
	buf       []tarn.Event[T]
	// read counts the events of the inner stream.
	read int
	// until is when a source that respects the watch's timeout ends the stream.
	until time.Time

	silent bool
	ended  error
}

func newStream[T any](s *source[T], r *request, q tarn.WatchQuery, inner tarn.Stream[T]) *stream[T] {
	w := &stream[T]{inner: inner, plan: s.plan, streamEnd: r.streamEnd(), buf: make([]tarn.Event[T], readAhead)}
	w.mutator = newMutator(s, r, &w.out)
	if q.Timeout > 0 {
		w.until = time.Now().Add(q.Timeout)
	}
	return w
}

func (s *stream[T]) Close() { s.inner.Close() }

func (s *stream[T]) Next(ctx context.Context, buf []tarn.Event[T]) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	for {
		if n, err := s.out.take(ctx, buf); n > 0 || err != nil {
			return n, err
		}
		switch {
		case s.silent:
			<-ctx.Done()
			return 0, context.Cause(ctx)
		case s.ended != nil:
			return 0, s.ended
		case s.streamEnd.due(s.read):
			s.cut()
		case s.mutator.last != nil:
			if err := s.repeatInitial(ctx); err != nil {
				return 0, err
			}
		default:
			if err := s.readInner(ctx); err != nil {
				return 0, err
			}
		}
	}
}

// cut ends the stream, after it has delivered what is held back.
func (s *stream[T]) cut() {
	if s.mutator.releaseHeld() {
		return
	}
	if s.streamEnd.inject(s.read) {
		s.ended = s.streamEnd.err()
		s.silent = s.ended == nil
	}
	s.streamEnd = nil
}

// readInner passes events of the inner stream to the mutator. It returns an error
// only if ctx has ended.
func (s *stream[T]) readInner(ctx context.Context) error {
	room := len(s.buf)
	if s.streamEnd != nil {
		room = min(room, s.streamEnd.events-s.read)
	}
	tick, cancel := s.withDeadline(ctx)
	defer cancel()
	n, err := s.inner.Next(tick, s.buf[:room])
	s.read += n
	for _, e := range s.buf[:n] {
		s.mutator.add(e)
	}
	clear(s.buf[:n])
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case tick.Err() != nil && (errors.Is(err, tick.Err()) || errors.Is(err, context.Cause(tick))):
		s.mutator.releaseOverdue()
	default:
		s.mutator.releaseHeld()
		s.ended = err
	}
	return nil
}

// withDeadline limits a wait to the time at which the stream ends or a held event
// is due.
func (s *stream[T]) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	var wake time.Time
	if s.streamEnd != nil {
		wake = s.streamEnd.at
	}
	if held := s.mutator.held; held != nil && (wake.IsZero() || held.until.Before(wake)) {
		wake = held.until
	}
	if wake.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, wake)
}

// repeatInitial repeats the recent initial events instead of ending them, until the
// day or the watch's timeout ends.
func (s *stream[T]) repeatInitial(ctx context.Context) error {
	switch {
	case s.plan.ended():
		s.mutator.endInitial()
		return nil
	case !s.until.IsZero() && !time.Now().Before(s.until):
		s.ended = io.EOF
		return nil
	}
	if err := sleep(ctx, endlessPause); err != nil {
		return err
	}
	s.mutator.repeatLast(len(s.mutator.recent))
	return nil
}
