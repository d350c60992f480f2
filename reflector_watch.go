package tarn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// eventBatch is how many events are taken from a stream at once. A batch is
	// one write of the store and one hand-over to each subscriber.
	eventBatch = 128
	// shortWatch is how long a watch without events must last to count as one.
	shortWatch = time.Second
	// maxShortWatches is how many watches in a row may end within a second before
	// the next one is made to wait: a few happen when a server rolls, more would
	// be a spin.
	maxShortWatches = 5
	// probeAfter is how long a watch opened after an abnormal loss may stay
	// quiet before the source is asked whether it is still the same. Most speak
	// earlier, and a word is as good as an answer.
	probeAfter = time.Second
	// timeoutSlack is how much earlier than asked an ordinary timeout may seem to
	// come: sources count in whole seconds, and from before the stream was open.
	timeoutSlack = 5 * time.Second
)

// errRelist ends a pass quietly: why has been reported.
var errRelist = errors.New("the state must be read anew")

// Follow applies changes to the store until only another pass can help. It
// returns an error only if a watch could not be opened; why a stream ended has
// been reported. When ctx ends it returns nil.
func (p *Pass[T]) Follow(ctx context.Context) error {
	r := p.r
	timer := r.startResync(ctx)
	r.recheck.follows(timer.cancel)
	err := p.follow(timer.ctx)
	r.readNext(nextRead{soon: r.recheck.followed()})
	if resyncErr := timer.wait(); resyncErr != nil {
		r.report(ctx, resyncErr)
		return nil
	}
	return err
}

func (p *Pass[T]) follow(ctx context.Context) error {
	r := p.r
	stream, asked := p.stream, p.asked
	p.stream = nil
	for ctx.Err() == nil {
		if stream == nil {
			var err error
			if stream, asked, err = r.open(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		opened := r.opts.Clock.Now()
		r.monitor.follows(opened)
		events, err := r.consume(ctx, stream)
		r.monitor.left()
		stream.Close()
		stream = nil
		lasted := r.opts.Clock.Now().Sub(opened)
		if !r.mayResume(ctx, watched{err: err, events: events, lasted: lasted, asked: asked}) || !r.resumable() {
			return nil
		}
	}
	if stream != nil {
		stream.Close()
	}
	return nil
}

// open starts a watch where the store stands. A source that does not answer, or
// is busy, is asked again: nothing is lost meanwhile.
func (r *Reflector[T]) open(ctx context.Context) (Stream[T], time.Duration, error) {
	for {
		asked := r.watchFor()
		stream, err := r.watch(ctx, WatchQuery{From: r.version, Held: r.held(), Timeout: asked})
		if err == nil {
			r.monitor.opened()
			return stream, asked, nil
		}
		err = r.explain("watch from", r.version, err)
		reason := ReasonOf(err)
		if reason == ReasonExpired || reason == ReasonTooNew {
			r.expired()
		}
		if ctx.Err() != nil || (reason != ReasonRefused && reason != ReasonBusy) || !r.resumable() {
			return nil, 0, err
		}
		r.report(ctx, err)
		r.monitor.enter(StateWaiting)
		r.rewindSuspected = r.rewindSuspected || reason == ReasonRefused
		if !pause(ctx, r.opts.Clock, max(r.opts.Delay(), RetryAfter(err))) {
			return nil, 0, err
		}
	}
}

// consume applies a stream's events until it ends, and returns how many there
// were and why it ended.
func (r *Reflector[T]) consume(ctx context.Context, stream Stream[T]) (int, error) {
	events := 0
	d := r.newChangeBuilder()
	buf := make([]Event[T], eventBatch)
	due, numbered := r.unreadable.due, r.numbered()
	timer := r.startSilenceTimer(ctx)
	defer func() {
		r.monitor.damage.waitsWith(nil)
		timer.close()
	}()
	for {
		n, err := stream.Next(timer.ctx, buf)
		if n == 0 && err != nil {
			switch {
			case ctx.Err() != nil:
				return events, context.Cause(ctx)
			case !timer.expired() && !timer.interrupted():
				return events, err
			}
			repairing := r.monitor.damage.any()
			if err := r.overdue(); err != nil {
				return events, err
			}
			if err := r.repairSome(ctx); err != nil {
				return events, err
			}
			if repairing || timer.interrupted() {
				timer.close()
				timer = r.startSilenceTimer(ctx)
				continue
			}
			if !r.rewindSuspected {
				return events, ErrSilent
			}
			if err := r.settleSuspicion(ctx); err != nil {
				return events, err
			}
			timer.close()
			timer = r.startSilenceTimer(ctx)
			continue
		}
		timer.reset()
		events += n
		suspected := r.rewindSuspected
		err = d.take(ctx, buf[:n])
		clear(buf[:n])
		if err == nil && d.suspect {
			d.suspect = false
			r.rewindSuspected = true
			err = r.settleSuspicion(ctx)
		}
		if err == nil {
			err = r.overdue()
		}
		if err == nil {
			err = r.repairSome(ctx)
		}
		if err != nil {
			return events, err
		}
		if r.unreadable.due != due || r.numbered() != numbered || suspected && !r.rewindSuspected || timer.expired() || timer.interrupted() {
			// How long to be patient has changed; or it was us who took long.
			due, numbered = r.unreadable.due, r.numbered()
			timer.close()
			timer = r.startSilenceTimer(ctx)
		}
		timer.reset() // what took long until here was not the source
	}
}

// startSilenceTimer waits for the source for as long as the reflector is patient, or until there
// is an object to repair.
func (r *Reflector[T]) startSilenceTimer(ctx context.Context) *silenceTimer {
	timer := newSilenceTimer(ctx, r.opts.Clock, r.patience())
	r.monitor.damage.waitsWith(func() { timer.cancel(errDamaged) })
	return timer
}

// patience is how long a watch may be silent: as long as the options say, but
// only for a moment while a rewind is suspected.
func (r *Reflector[T]) patience() time.Duration {
	limit := r.opts.SilenceLimit
	if r.versionless() {
		// A source without versions has no bookmarks either, and a watch of it
		// cannot be replaced without losing what happens in between.
		limit = 0
	} else if r.rewindSuspected {
		limit = probeAfter + r.opts.Jitter(probeAfter)
	}
	if due := r.unreadable.due; !due.IsZero() {
		if left := max(due.Sub(r.opts.Clock.Now()), 1); limit <= 0 || left < limit {
			limit = left
		}
	}
	if due := r.repairDue(); !due.IsZero() {
		if left := max(due.Sub(r.opts.Clock.Now()), 1); limit <= 0 || left < limit {
			limit = left
		}
	}
	return limit
}

// resumable says whether another watch can go on where the last one ended. One
// from no version begins with what is there and says nothing of what is gone, so
// the state must be read anew; unless the source has no versions at all, and
// perhaps lists nothing of what it tells, as fakes do.
func (r *Reflector[T]) resumable() bool {
	return r.version != Latest && r.version != Any || r.versionless()
}

// versionless says that the source is known to have no versions: by declaration,
// or by objects without one, unless it sends bookmarks all the same.
func (r *Reflector[T]) versionless() bool {
	return r.opts.Unversioned && !r.numbered() || r.traits.unversioned && !r.traits.bookmarks
}

// numbered says whether the version reached can be compared with others.
func (r *Reflector[T]) numbered() bool {
	_, ok := r.version.Compare(r.version)
	return ok
}

// settleSuspicion asks the source whether it went back.
func (r *Reflector[T]) settleSuspicion(ctx context.Context) error {
	ok, err := r.probe(ctx)
	if err != nil {
		return err
	}
	r.rewindSuspected = false
	if !ok {
		return errRelist
	}
	return nil
}

// watched is how a stream went.
type watched struct {
	err           error
	events        int
	lasted, asked time.Duration
}

// mayResume decides what follows the end of a stream: true means another watch
// from where the store stands, after any wait that is due; false a new pass.
func (r *Reflector[T]) mayResume(ctx context.Context, w watched) bool {
	if ctx.Err() != nil {
		return false
	}
	if w.err == io.EOF {
		return r.mayResumeAfterEnd(ctx, w)
	}
	if errors.Is(w.err, errRelist) {
		return false
	}
	if errors.Is(w.err, ErrSilent) {
		return r.mayResumeAfterSilence(ctx)
	}
	r.report(ctx, r.explain("watch from", r.version, w.err))
	switch reason := ReasonOf(w.err); {
	case reason == ReasonExpired || reason == ReasonTooNew:
		r.expired()
		return false
	case reason == ReasonLost && w.events == 0 && !r.shortWatchEnded(0):
		return false
	case reason == ReasonRefused || reason == ReasonBusy || reason == ReasonLost:
		r.rewindSuspected = r.rewindSuspected || reason != ReasonBusy
		r.monitor.enter(StateWaiting)
		return pause(ctx, r.opts.Clock, max(r.opts.Delay(), RetryAfter(w.err)))
	case reason == ReasonInternal:
		if !r.internal.failed(r.opts.Clock.Now(), r.opts.RetryInternal()) {
			return false
		}
		// Not on the given clock: who asks for these retries and owns the clock
		// expects them without having to move it.
		return pause(ctx, realClock{}, r.opts.Delay())
	default:
		return false
	}
}

func (r *Reflector[T]) mayResumeAfterEnd(ctx context.Context, w watched) bool {
	if w.lasted < shortWatch && w.events == 0 {
		r.report(ctx, fmt.Errorf("%s: %w", r.opts.Name, ErrShortWatch))
		return false
	}
	if !r.shortWatchEnded(w.events) {
		return false
	}
	if w.lasted < w.asked-timeoutSlack {
		r.rewindSuspected = true
	}
	if w.lasted >= shortWatch {
		r.shortWatches = 0
		return true
	}
	r.shortWatches++
	return r.shortWatches <= maxShortWatches || pause(ctx, r.opts.Clock, r.opts.Delay())
}

// mayResumeAfterSilence asks the source whether it is still there and still the
// same before the silent watch is replaced. From a source that never sent a
// bookmark, silence is no failure: there may be nothing to say.
func (r *Reflector[T]) mayResumeAfterSilence(ctx context.Context) bool {
	if !r.numbered() {
		// There is nothing to ask by; and without any version nowhere to go on
		// from.
		r.next.cause = causeSilence
		return r.version != ""
	}
	if r.traits.bookmarks {
		r.report(ctx, r.explain("watch from", r.version, ErrSilent))
	}
	ok, err := r.probe(ctx)
	if err == nil {
		return ok && r.mayWatchShortlyAgain()
	}
	if ctx.Err() != nil {
		return false
	}
	r.report(ctx, err)
	r.rewindSuspected = true
	r.monitor.enter(StateWaiting)
	return pause(ctx, r.opts.Clock, max(r.opts.Delay(), RetryAfter(err)))
}
