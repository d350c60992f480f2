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

// stream is one that misbehaves. What it is to hand out goes through the mill
// into the outbox; only when that is empty does it read on or come to its end.
type stream[T any] struct {
	inner tarn.Stream[T]
	plan  *Plan
	fate  *fate
	mill  *mill[T]
	out   outbox[T]
	buf   []tarn.Event[T]
	// read counts the events of the inner stream.
	read int
	// until is when a source that respects the watch's timeout ends the stream.
	until time.Time

	silent bool
	ended  error
}

func newStream[T any](s *source[T], r *request, q tarn.WatchQuery, inner tarn.Stream[T]) *stream[T] {
	w := &stream[T]{inner: inner, plan: s.plan, fate: r.fate(), buf: make([]tarn.Event[T], readAhead)}
	w.mill = newMill(s, r, &w.out)
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
		case s.fate.due(s.read):
			s.meetFate()
		case s.mill.last != nil:
			if err := s.goRound(ctx); err != nil {
				return 0, err
			}
		default:
			if err := s.readOn(ctx); err != nil {
				return 0, err
			}
		}
	}
}

// meetFate ends the stream, after what is still held back.
func (s *stream[T]) meetFate() {
	if s.mill.letGo() {
		return
	}
	if s.fate.happens(s.read) {
		s.ended = s.fate.end()
		s.silent = s.ended == nil
	}
	s.fate = nil
}

// readOn takes what the inner stream has into the mill. It returns an error only
// if ctx has ended.
func (s *stream[T]) readOn(ctx context.Context) error {
	room := len(s.buf)
	if s.fate != nil {
		room = min(room, s.fate.events-s.read)
	}
	tick, cancel := s.untilSomething(ctx)
	defer cancel()
	n, err := s.inner.Next(tick, s.buf[:room])
	s.read += n
	for _, e := range s.buf[:n] {
		s.mill.grind(e)
	}
	clear(s.buf[:n])
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case tick.Err() != nil && (errors.Is(err, tick.Err()) || errors.Is(err, context.Cause(tick))):
		s.mill.letGoLate()
	default:
		s.mill.letGo()
		s.ended = err
	}
	return nil
}

// untilSomething bounds a wait by what must be done then.
func (s *stream[T]) untilSomething(ctx context.Context) (context.Context, context.CancelFunc) {
	var wake time.Time
	if s.fate != nil {
		wake = s.fate.at
	}
	if held := s.mill.held; held != nil && (wake.IsZero() || held.until.Before(wake)) {
		wake = held.until
	}
	if wake.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, wake)
}

// goRound is a stream of initial events that does not come to its end: all that
// it brought lately comes again, until the day or its time is over.
func (s *stream[T]) goRound(ctx context.Context) error {
	switch {
	case s.plan.ended():
		s.mill.finish()
		return nil
	case !s.until.IsZero() && !time.Now().Before(s.until):
		s.ended = io.EOF
		return nil
	}
	if err := sleep(ctx, endlessPause); err != nil {
		return err
	}
	s.mill.again(len(s.mill.memory))
	return nil
}
