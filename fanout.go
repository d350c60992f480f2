package tarn

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn/internal/guard"
)

// fanout stands between a reflector and a store: what is written to the store is
// handed to the subscribers, in the same order.
//
// mu makes writing and joining exclude each other, so that a subscriber that joins
// sees each object either in the state it starts with or as a change after it,
// never both and never neither. Readers of the store do not pass here.
type fanout[T any] struct {
	store  ReadStore[T]
	clock  Clock
	logger *slog.Logger

	// versionOf and metaOf are those of the first section's reflector. They read the version
	// and the uid of any section's objects, but do not know their sections.
	versionOf func(T) Version
	metaOf    func(T) Meta
	// joint is the version that all sections have reached.
	joint atomic.Value

	// sinks are set before the replica runs. Their state can be read while a slow write
	// of the store holds mu.
	sinks atomic.Pointer[[]*sinkRunner[T]]

	// guard is set by Run before anything else; nil unless guard mode is on.
	guard *guard.Session

	mu        sync.Mutex
	followers []*follower[T]
	// restoring says that the store is being loaded, which would take too long for the
	// lock; see [follower.late].
	restoring bool
	// contact is the time of the last contact with the source.
	contact time.Time
	// sections are the present ones. synced says that all are settled, or were once;
	// then allSynced is closed.
	sections  []*sectionState
	synced    bool
	allSynced chan struct{}
	// ctx is what subscriptions run with; nil before the start.
	ctx     context.Context
	closed  bool
	running sync.WaitGroup
	joined  int
	// waiters wait for all sections.
	waiters versionWaiters
}

func newFanout[T any](store ReadStore[T], opts Options[T], reflector *Reflector[T], sections []*section[T]) *fanout[T] {
	h := &fanout[T]{
		store: store, clock: opts.Clock, logger: opts.Logger,
		versionOf: reflector.versionOf, metaOf: reflector.metaOf,
		allSynced: make(chan struct{}),
	}
	for _, s := range sections {
		s.state = newSectionState(s)
		h.sections = append(h.sections, s.state)
	}
	h.joint.Store(Version(""))
	h.setSinks(opts.Sinks)
	return h
}

// setSinks sets the sinks, before the replica runs.
func (h *fanout[T]) setSinks(sinks []Sink[T]) {
	var runners []*sinkRunner[T]
	for _, s := range sinks {
		runners = append(runners, newSinkRunner(s, h))
	}
	h.sinks.Store(&runners)
}

func (h *fanout[T]) runners() []*sinkRunner[T] { return *h.sinks.Load() }

// apply writes to the store what a section has learned, and publishes it.
func (h *fanout[T]) apply(section *sectionState, changes []Change[T], at Position) error {
	news, again := split(changes)
	h.mu.Lock()
	defer h.mu.Unlock()
	at.Section = section.position.Section
	err := h.store.Apply(news, at)
	if !Taken(err) {
		return err
	}
	h.publish(news, again)
	h.toSinks(section, news, at)
	h.moveTo(section, at)
	return err
}

// toSinks queues for the sinks what the store has taken.
func (h *fanout[T]) toSinks(section *sectionState, changes []Change[T], at Position) {
	gap, runners := section.gap(at), h.runners()
	if len(runners) == 0 {
		return
	}
	h.contact = h.clock.Now()
	for _, s := range runners {
		s.add(h.contact, changes, at, gap)
	}
}

// isSynced says whether the first whole state of all sections has been written.
func (h *fanout[T]) isSynced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced
}

// split separates what changes the store from what only offers it again.
func split[T any](changes []Change[T]) (news, again []Change[T]) {
	for i := range changes {
		if changes[i].Type == Sync {
			return changes[:i], changes[i:]
		}
	}
	return changes, nil
}

func (h *fanout[T]) publish(news, again []Change[T]) {
	if len(h.followers) == 0 || len(news)+len(again) == 0 {
		return
	}
	now := h.clock.Now()
	// The writer uses its slice again; the followers share one copy.
	news = append([]Change[T](nil), news...)
	own := withoutMoved(news)
	for _, f := range h.followers {
		seen := own
		if f.moved {
			seen = news
		}
		if len(seen) > 0 {
			f.add(now, seen)
		}
		if len(again) > 0 && f.syncs() {
			f.add(now, again)
		}
	}
}

// wantsSync says whether any subscriber wants Sync changes.
func (h *fanout[T]) wantsSync() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.someSync()
}

func (h *fanout[T]) someSync() bool {
	return slices.ContainsFunc(h.followers, func(f *follower[T]) bool { return f.syncs() })
}

// subscribe adds a subscription and, if they run, starts it.
func (h *fanout[T]) subscribe(deliver func(Change[T]), opts SubscribeOptions) (*Subscription[T], error) {
	if opts.Syncs == nil {
		opts.Syncs = never
	}
	f, initial, err := h.enter(opts.Bound, opts.Syncs, func(f *follower[T]) {
		f.moved = opts.Moved
		h.addSubscription(f, deliver, opts)
	})
	if err != nil {
		return nil, err
	}
	h.bringUp(f, initial)
	return f.subscription, nil
}

// addSubscription makes a follower a subscription. mu is held.
func (h *fanout[T]) addSubscription(f *follower[T], deliver func(Change[T]), opts SubscribeOptions) {
	h.joined++
	if opts.Name == "" {
		opts.Name = fmt.Sprintf("subscriber %d", h.joined)
	}
	f.subscription = &Subscription[T]{
		opts:     opts,
		deliver:  deliver,
		fanout:   h,
		follower: f,
		synced:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	if h.ctx != nil {
		h.run(f.subscription)
	}
}

func never() bool { return false }

// run starts a subscription, unless the caller runs it or it has been closed before.
func (h *fanout[T]) run(s *Subscription[T]) {
	if !s.opts.Inline && s.begun.CompareAndSwap(false, true) {
		h.running.Go(func() { s.run(h.ctx) })
	}
}

// start lets subscriptions run.
func (h *fanout[T]) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx = ctx
	for _, f := range h.followers {
		if f.subscription != nil {
			h.run(f.subscription)
		}
	}
}

// stop ends all followers and waits for the subscriptions that run.
func (h *fanout[T]) stop() {
	h.mu.Lock()
	h.closed = true
	for _, f := range h.followers {
		f.backlog.close()
		if f.subscription != nil {
			f.subscription.abandon()
		}
	}
	h.followers = nil
	for _, s := range h.sections {
		s.waiters.close()
	}
	h.waiters.close()
	h.mu.Unlock()
	h.running.Wait()
}
