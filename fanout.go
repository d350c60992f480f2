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
// mu makes writing and joining exclude each other, so that one who joins sees
// each object either in the state it starts with or as a change after it, never
// both and never neither. Readers of the store do not pass here.
type fanout[T any] struct {
	store  ReadStore[T]
	clock  Clock
	logger *slog.Logger

	// versionOf and describe are the reflector's.
	versionOf func(T) Version
	describe  func(T) (Meta, error)
	// noteReached has Health know what a section has reached, before anyone who
	// waited for it can look.
	noteReached func(section int, v Version)
	// joint is the version that all sections have reached.
	joint atomic.Value

	// sinks are set before the replica runs. They can be asked how they are while a store
	// takes its time to write, which holds mu.
	sinks atomic.Pointer[[]*sinkRunner[T]]

	// guard is set by Run before anything else; nil unless guard mode is on.
	guard *guard.Session

	mu        sync.Mutex
	followers []*follower[T]
	// restoring says that the store is being loaded, which would take too long for the
	// lock; see [follower.late].
	restoring bool
	// missed has, by section, why the next Apply may have missed states; empty if it
	// has not.
	missed []GapCause
	// contact is when the source was last heard.
	contact time.Time
	// positions are those of the sections, unsynced how many have none yet. allSynced is
	// closed when all have.
	positions []Position
	unsynced  int
	synced    bool
	allSynced chan struct{}
	// ctx is what subscriptions run with; nil before the start.
	ctx     context.Context
	closed  bool
	running sync.WaitGroup
	joined  int
	// waiters has one for each section, and one for all of them at the end.
	waiters []versionWaiters
}

func newFanout[T any](store ReadStore[T], opts Options[T], reflector *Reflector[T], sections []section[T]) *fanout[T] {
	h := &fanout[T]{
		store: store, clock: opts.Clock, logger: opts.Logger,
		versionOf: reflector.versionOf, describe: reflector.describe,
		positions: make([]Position, len(sections)), missed: make([]GapCause, len(sections)), unsynced: len(sections), allSynced: make(chan struct{}),
		waiters: make([]versionWaiters, len(sections)+1),
	}
	for i, s := range sections {
		h.positions[i].Section = s.name
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
func (h *fanout[T]) apply(section int, changes []Change[T], at Position) error {
	news, again := split(changes)
	h.mu.Lock()
	defer h.mu.Unlock()
	at.Section = h.positions[section].Section
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
func (h *fanout[T]) toSinks(section int, changes []Change[T], at Position) {
	gap, runners := h.gap(section, at), h.runners()
	if len(runners) == 0 {
		return
	}
	h.contact = h.clock.Now()
	for _, s := range runners {
		s.add(h.contact, changes, at, gap)
	}
}

// noteMissed notes why what a section writes next may lack states. A bad object does not
// replace the cause that the whole state was read.
func (h *fanout[T]) noteMissed(section int, cause GapCause) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.missed[section] == "" || cause != GapBad {
		h.missed[section] = cause
	}
}

// gap is the range of versions whose states a write may have missed, nil if there is
// none.
func (h *fanout[T]) gap(section int, at Position) *Gap {
	cause, before := h.missed[section], h.positions[section]
	h.missed[section] = ""
	if cause == "" && !(before.Complete && at.Complete) {
		cause = GapBad
	}
	if cause == "" || before.Version == "" || before.Version == at.Version && before.Epoch == at.Epoch {
		return nil
	}
	return &Gap{Section: at.Section, From: before.Version, To: at.Version, Cause: cause}
}

// sectionPositions are those of the sections that have one.
func (h *fanout[T]) sectionPositions() (all Positions) {
	for _, p := range h.positions {
		if p.Version != "" || p.Complete {
			all.Move(p)
		}
	}
	return all
}

// isSynced says whether the first whole state of all sections has been written.
func (h *fanout[T]) isSynced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced
}

// version is the one that all sections have reached, empty while that cannot be told.
// Why not the store's version: others may write to a store too, as the users of an
// informer's indexer do, and a store knows of a section only when that was written for
// the first time.
func (h *fanout[T]) version() Version { return h.joint.Load().(Version) }

// position is the version that a section has reached.
func (h *fanout[T]) position(section int) Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.positions[section].Version
}

// moveTo notes the position of a section, and wakes the callers that wait for it.
func (h *fanout[T]) moveTo(section int, at Position) {
	h.positions[section] = at
	h.joint.Store(oldest(h.positions))
	h.wake(section)
}

// wake wakes the callers that wait for a version that a section has reached.
func (h *fanout[T]) wake(section int) {
	h.noteReached(section, h.positions[section].Version)
	h.waiters[section].reach(h.positions[section].Version)
	h.waiters[len(h.positions)].reach(h.version())
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

// markSynced notes that the first whole state of a section has been written, and
// tells everyone once that holds for all.
func (h *fanout[T]) markSynced() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unsynced--; h.synced || h.unsynced > 0 {
		return
	}
	h.synced = true
	close(h.allSynced)
	now := h.clock.Now()
	for _, f := range h.followers {
		f.mark(now)
	}
	for _, s := range h.runners() {
		s.copySynced()
	}
	// Only now is a content without a version known to have none.
	for i := range h.positions {
		h.wake(i)
	}
}

// wantsSync says whether anyone would listen to Sync changes.
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

// run starts a subscription, unless that is the caller's business or it has been
// closed before.
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
	for i := range h.waiters {
		h.waiters[i].close()
	}
	h.mu.Unlock()
	h.running.Wait()
}
