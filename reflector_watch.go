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
	// quietBatch is how many are taken before a watch has had so many at once: most never
	// have, and a process with a hundred of them saves 3 MB.
	quietBatch = 16
	// shortWatch is the least duration of a watch; a shorter one without events is an
	// error.
	shortWatch = time.Second
	// maxShortWatches is how many watches in a row may end within a second before
	// the next one has to wait: a few happen when a server restarts, more would be a
	// busy loop.
	maxShortWatches = 5
	// maxLostOpenings is how many watches in a row may be lost before they are open until
	// the source is asked whether it answers at all. A source that restarts behind a load
	// balancer loses a few; one that answers, and loses every watch, must be listed.
	maxLostOpenings = 5
	// timeoutSlack is how much earlier than asked a normal timeout may come: sources
	// count in whole seconds, and from before the stream was open.
	timeoutSlack = 5 * time.Second
)

// errRelist ends a pass whose cause has already been reported.
var errRelist = errors.New("the whole state must be read again")

// Follow applies changes to the store until only another pass can help. It returns
// an error only if a watch could not be opened; it reports the errors of streams
// itself. When ctx ends it returns nil.
func (p *Pass[T]) Follow(ctx context.Context) error {
	r := p.r
	timer := r.startResync(ctx)
	r.recheck.passStarted(timer.cancel)
	err := p.follow(timer.ctx)
	if r.recheck.passEnded() {
		r.waits.restart()
	}
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
		r.monitor.watchStarted(opened)
		events, err := r.consume(ctx, stream)
		r.monitor.watchEnded()
		stream.Close()
		stream = nil
		lasted := r.opts.Clock.Now().Sub(opened)
		if !r.mayResume(ctx, watchResult{err: err, events: events, lasted: lasted, asked: asked}) || !r.resumable() {
			return nil
		}
	}
	if stream != nil {
		stream.Close()
	}
	return nil
}

// open starts a watch from the version reached. It retries if the source refuses the
// connection, loses it or is busy: the watch still starts at the same version.
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
		switch reason {
		case ReasonExpired:
			r.expired()
		case ReasonTooNew:
			r.tooNew()
		}
		if ctx.Err() != nil || (reason != ReasonRefused && reason != ReasonBusy && reason != ReasonLost) || !r.resumable() || reason == ReasonLost && r.losesWatches(ctx) {
			return nil, 0, err
		}
		r.report(ctx, err)
		r.monitor.enter(StateWaiting)
		r.waits.failing = true
		if reason != ReasonBusy {
			r.suspicion.raise()
		}
		if !pause(ctx, r.opts.Clock, r.waits.delay(err)) {
			return nil, 0, err
		}
	}
}

// losesWatches counts a watch that was lost before it was open, and reports whether the
// source answers other requests while it loses each watch.
func (r *Reflector[T]) losesWatches(ctx context.Context) bool {
	if r.lostOpenings++; r.lostOpenings <= maxLostOpenings {
		return false
	}
	_, err := r.probe(ctx)
	return err == nil
}

// consume applies a stream's events until it ends, and returns their number and the
// error that ended it.
func (r *Reflector[T]) consume(ctx context.Context, stream Stream[T]) (int, error) {
	r.lostOpenings = 0
	events := 0
	d := r.newChangeBuilder()
	buf := make([]Event[T], quietBatch)
	r.suspicion.watching(r.opts.Clock.Now(), r.opts.Jitter)
	due, probeable := r.unreadable.due, r.probeable()
	timer := r.startSilenceTimer(ctx)
	defer func() {
		r.monitor.damage.setWake(nil)
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
			if err := r.relistIfDue(); err != nil {
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
			if !r.probeDue() {
				return events, ErrSilent
			}
			if err := r.checkRewind(ctx); err != nil {
				return events, err
			}
			timer.close()
			timer = r.startSilenceTimer(ctx)
			continue
		}
		timer.reset()
		events += n
		probeAt := r.suspicion.due
		err = d.take(ctx, buf[:n])
		clear(buf[:n])
		if n == len(buf) && n < eventBatch {
			buf = make([]Event[T], eventBatch)
		}
		older := d.sawOlder && r.suspicion.sawOlder(r.opts.Clock.Now())
		d.sawOlder = false
		if err == nil && (older || r.probeDue()) {
			err = r.checkRewind(ctx)
		}
		if err == nil {
			err = r.relistIfDue()
		}
		if err == nil {
			err = r.repairSome(ctx)
		}
		if err != nil {
			return events, err
		}
		if r.unreadable.due != due || r.probeable() != probeable || r.suspicion.due != probeAt || timer.expired() || timer.interrupted() {
			// The limit has changed, or applying the events took longer than it.
			due, probeable = r.unreadable.due, r.probeable()
			timer.close()
			timer = r.startSilenceTimer(ctx)
		}
		timer.reset() // the time until here was ours, not the source's
		if ctx.Err() != nil {
			// Asked here too, because a stream that always has events never looks.
			return events, context.Cause(ctx)
		}
	}
}

// startSilenceTimer limits the wait for events to waitLimit, or until there is an object
// to repair.
func (r *Reflector[T]) startSilenceTimer(ctx context.Context) *silenceTimer {
	timer := newSilenceTimer(ctx, r.opts.Clock, r.waitLimit())
	r.monitor.damage.setWake(func() { timer.cancel(errDamaged) })
	return timer
}

// waitLimit is how long to wait for an event: SilenceLimit, but no longer than until a
// probe, a relist or a repair is due.
func (r *Reflector[T]) waitLimit() time.Duration {
	limit := r.opts.SilenceLimit
	if r.versionless() {
		// A source without versions has no bookmarks either, and its watch cannot
		// be replaced without missing the events in between.
		limit = 0
	}
	probe := r.suspicion.due
	if !r.probeable() {
		probe = time.Time{}
	}
	for _, due := range []time.Time{probe, r.unreadable.due, r.repairDue()} {
		if due.IsZero() {
			continue
		}
		if left := max(due.Sub(r.opts.Clock.Now()), 1); limit <= 0 || left < limit {
			limit = left
		}
	}
	return limit
}

// resumable reports whether another watch can continue where the last one ended. A
// watch without a version begins with the present objects and does not report deleted
// ones, so the whole state must be read; except from a source without versions, which
// may not list what it sends as events, as fakes do.
func (r *Reflector[T]) resumable() bool {
	return r.version != Latest && r.version != Any || r.versionless()
}

// versionless reports whether the source has no versions: by declaration, or because its
// objects have none and it sends no bookmarks.
func (r *Reflector[T]) versionless() bool {
	return r.opts.Unversioned && !r.numbered() || r.unordered() || r.traits.unversioned && !r.traits.bookmarks
}

// unordered reports whether the versions of the source say nothing about time. A test gives
// the objects of a fake any versions, and the fake lists them under one of its own. A server
// that only declares itself a fake sends bookmarks, and its watches are decoded from a stream.
func (r *Reflector[T]) unordered() bool {
	fake := r.opts.Unversioned
	if r.fake != nil {
		if is, known := r.fake.Fake(); known {
			fake = is
		}
	}
	return fake && !r.traits.bookmarks
}

// numbered reports whether the version reached is a number.
func (r *Reflector[T]) numbered() bool {
	_, ok := r.version.Compare(r.version)
	return ok
}

// probeable reports whether a probe can find a rewind. Versions that are not numbers, or are
// those of a fake, cannot be compared.
func (r *Reflector[T]) probeable() bool { return r.numbered() && !r.unordered() }

// probeDue reports whether to probe the source now.
func (r *Reflector[T]) probeDue() bool {
	return r.suspicion.raised && r.probeable() && r.suspicion.probeDue(r.opts.Clock.Now())
}

// checkRewind probes the source for a rewind.
func (r *Reflector[T]) checkRewind(ctx context.Context) error {
	ok, err := r.probe(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return errRelist
	}
	return nil
}

// watchResult describes a watch that has ended.
type watchResult struct {
	err           error
	events        int
	lasted, asked time.Duration
}

// mayResume decides what follows the end of a stream: true means another watch from
// the version reached, after any wait that is due; false means a new pass.
func (r *Reflector[T]) mayResume(ctx context.Context, w watchResult) bool {
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
	case reason == ReasonExpired:
		r.expired()
		return false
	case reason == ReasonTooNew:
		r.tooNew()
		return false
	case reason == ReasonLost && w.events == 0 && !r.catchUpWatchEnded(0):
		return false
	case reason == ReasonRefused || reason == ReasonBusy || reason == ReasonLost:
		if reason != ReasonBusy {
			r.suspicion.raise()
		}
		r.monitor.enter(StateWaiting)
		return pause(ctx, r.opts.Clock, r.waits.delay(w.err))
	case reason == ReasonInternal:
		if !r.internal.failed(r.opts.Clock.Now(), r.opts.RetryInternal()) {
			return false
		}
		// In real time: a caller that sets RetryInternal and its own clock expects
		// these retries without advancing the clock.
		return pause(ctx, realClock{}, r.waits.delay(nil))
	default:
		return false
	}
}

func (r *Reflector[T]) mayResumeAfterEnd(ctx context.Context, w watchResult) bool {
	if w.lasted < shortWatch && w.events == 0 {
		r.report(ctx, fmt.Errorf("%s: %w", r.opts.Name, ErrShortWatch))
		return false
	}
	if !r.catchUpWatchEnded(w.events) {
		return false
	}
	if w.lasted < w.asked-timeoutSlack {
		r.suspicion.raise()
	}
	if w.lasted >= shortWatch {
		r.shortWatches = 0
		return true
	}
	r.shortWatches++
	return r.shortWatches <= maxShortWatches || pause(ctx, r.opts.Clock, r.waits.delay(nil))
}

// mayResumeAfterSilence probes the source before the silent watch is replaced. From a
// source that never sent a bookmark, silence is no failure: there may be no events.
func (r *Reflector[T]) mayResumeAfterSilence(ctx context.Context) bool {
	if !r.numbered() {
		// A probe cannot compare versions; and without a version a watch cannot
		// continue.
		r.next.cause = causeSilence
		return r.version != ""
	}
	if r.traits.bookmarks {
		r.report(ctx, r.explain("watch from", r.version, ErrSilent))
	}
	ok, err := r.probe(ctx)
	if err == nil {
		return ok && r.mayCatchUpByWatch()
	}
	if ctx.Err() != nil {
		return false
	}
	r.report(ctx, err)
	r.suspicion.raise()
	r.monitor.enter(StateWaiting)
	return pause(ctx, r.opts.Clock, r.waits.delay(err))
}
