package tarn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxWatchListFailures is how many streams in a row may lack an end of the initial
// events before the source is listed instead, for good. One failure could be an
// accident; giving up wrongly costs only a list.
const maxWatchListFailures = 3

// minInitialRate is how many initial events a second a stream has to bring. A server that
// ignores the request for initial events sends the present objects too, and then each
// new one as it is created; only the rate distinguishes the two.
const minInitialRate = 10

// errNoEnd is an [ErrNoInitialEnd] that took so long to find out that the source is
// listed at once.
var errNoEnd = fmt.Errorf("%w", ErrNoInitialEnd)

func (r *Reflector[T]) useWatchList() bool {
	return r.opts.WatchList && r.traits.watchListFailures < maxWatchListFailures
}

// giveUpWatchList records that this source cannot stream its collection.
func (r *Reflector[T]) giveUpWatchList() {
	r.traits.watchListFailures = maxWatchListFailures
	r.monitor.update(func(h *Health) { h.WatchListGivenUp = true })
}

// streamState fetches the whole collection as a stream of initial events, and keeps
// the stream for the events after them. On error the caller can list instead.
func (r *Reflector[T]) streamState(ctx context.Context) (*Pass[T], error) {
	for {
		from := r.version
		if r.next.version >= consistent {
			from = Latest
		}
		pass, err := r.streamFrom(ctx, from)
		switch reason := ReasonOf(err); {
		case err == nil && !pass.version.OlderThan(r.version):
			r.traits.watchListFailures = 0
			return pass, nil
		case err == nil && from == Latest && r.next.version == anyAfterRewind:
			r.traits.watchListFailures = 0
			return pass, nil
		case err == nil:
			// Older than the version reached: read consistently. If that is no
			// newer, the source went back in time.
			pass.Close()
			if from == Latest {
				r.rewind(ctx, pass.version)
			}
			r.readNext(nextRead{version: consistent})
		case ctx.Err() != nil:
			return nil, err
		case reason == ReasonRefused || reason == ReasonBusy:
			r.waits.failing = true
			r.report(ctx, err)
			if !r.waitToRetry(ctx, r.waits.delay(err)) {
				return nil, err
			}
		case (reason == ReasonExpired || reason == ReasonTooNew) && r.next.version == notOlder:
			r.readNext(nextRead{version: consistent})
		case reason == ReasonNoWatchList:
			r.giveUpWatchList()
			return nil, err
		case errors.Is(err, ErrNoInitialEnd):
			r.waits.failing = true
			r.report(ctx, err)
			if r.traits.watchListFailures++; r.traits.watchListFailures >= maxWatchListFailures {
				r.giveUpWatchList()
				return nil, err
			}
			if errors.Is(err, errNoEnd) || !r.waitToRetry(ctx, r.waits.delay(nil)) {
				return nil, err
			}
		default:
			// Not reported: the list that follows may succeed. If it fails, its
			// error is reported, as it always was.
			r.monitor.failed(err)
			return nil, err
		}
	}
}

// waitToRetry waits between two attempts.
func (r *Reflector[T]) waitToRetry(ctx context.Context, d time.Duration) bool {
	r.monitor.enter(StateWaiting)
	defer r.monitor.enter(StateListing)
	return pause(ctx, r.opts.Clock, d)
}

// streamFrom makes one attempt.
func (r *Reflector[T]) streamFrom(ctx context.Context, from Version) (*Pass[T], error) {
	pass := &Pass[T]{r: r, state: r.newRelisting(), cause: r.next.cause, asked: r.watchTimeout()}
	stream, err := r.watch(ctx, WatchQuery{From: from, Initial: true, Afresh: r.next.afresh, Held: r.held(), Timeout: pass.asked})
	if err != nil {
		return nil, r.explain("watch list at", from, err)
	}
	if err := pass.gather(ctx, stream); err != nil {
		stream.Close()
		return nil, r.explain("watch list at", from, err)
	}
	r.monitor.update(func(h *Health) { h.Watches++ })
	return pass, nil
}

// gather reads initial events up to their end.
func (p *Pass[T]) gather(ctx context.Context, stream Stream[T]) error {
	r := p.r
	timer := newSilenceTimer(ctx, r.opts.Clock, r.opts.WatchListDeadline)
	defer timer.close()
	added, enough := 0, max(1, int(r.opts.WatchListDeadline.Seconds()*minInitialRate))
	buf := make([]Event[T], eventBatch)
	for start := r.opts.Clock.Now(); ; {
		n, err := stream.Next(timer.ctx, buf)
		switch {
		case err == nil && r.opts.Clock.Now().Sub(start) > p.asked:
			return fmt.Errorf("%w: it lasted longer than the %s requested", errNoEnd, p.asked)
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case timer.expired():
			return fmt.Errorf("%w: there were fewer than %d in the last %s", errNoEnd, enough, r.opts.WatchListDeadline)
		case err == io.EOF:
			return fmt.Errorf("%w: it was closed before", ErrNoInitialEnd)
		default:
			return err
		}
		for i, e := range buf[:n] {
			if e.Type == EventAdded {
				if added++; added%enough == 0 {
					timer.reset()
				}
			}
			switch {
			case e.Bad.Err != nil && e.Type == EventBookmark:
				r.reject(ctx, e.Bad) // it hides no object
			case e.Bad.Err != nil && e.Type == EventDeleted && e.Bad.Key != "":
				p.state.gone(ctx, e.Bad)
			case e.Bad.Err != nil:
				p.state.bad(ctx, e.Bad)
			case e.Type == EventAdded || e.Type == EventModified:
				p.state.put(ctx, e.Object)
			case e.Type == EventDeleted:
				p.state.remove(ctx, e.Object)
			case e.Type == EventBookmark && e.InitialEnd:
				r.traits.bookmarks = true // a source that marks the end sends others too
				if e.Version == "" && r.traits.versioned {
					return fmt.Errorf("%w: its end has no version, and earlier ones had", ErrNoList)
				}
				p.version = e.Version
				// A clone, because buf would be kept for as long as the watch.
				p.stream = &bufferedStream[T]{Stream: stream, events: slices.Clone(buf[i+1 : n])}
				return nil
			}
		}
		clear(buf[:n])
	}
}

// bufferedStream is a stream with events that have already been read.
type bufferedStream[T any] struct {
	Stream[T]
	events []Event[T]
}

func (s *bufferedStream[T]) Next(ctx context.Context, buf []Event[T]) (int, error) {
	if len(s.events) == 0 {
		return s.Stream.Next(ctx, buf)
	}
	n := copy(buf, s.events)
	if s.events = s.events[n:]; len(s.events) == 0 {
		s.events = nil
	}
	return n, nil
}

// watchTimeout spreads the ends of watches over time.
func (r *Reflector[T]) watchTimeout() time.Duration {
	return r.opts.MinWatchTimeout + r.opts.Jitter(r.opts.MinWatchTimeout)
}
