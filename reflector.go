package tarn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn/internal/guard"
)

// A Reflector keeps a store equal to a source. It alone decides when to list, when
// to resume, when to fall back and how long to wait. It is independent of protocol
// and storage.
//
// The loop is a state machine; docs/protocol.md has every cell of it, with its
// test. In short: a pass reads the whole collection, as a stream or as a list, and
// follows it from there, through any number of watches, until only a new pass can
// help. A growing, jittered wait separates passes.
//
// Everything below the options belongs to the goroutine that runs the loop.
type Reflector[T any] struct {
	source  Source[T]
	opts    Options[T]
	monitor *monitor

	// reader is nil for a store that cannot be read; then replace writes whole
	// states.
	reader    Reader[T]
	replace   func([]Item[T], Position) error
	apply     func([]Change[T], Position) error
	resync    func() error
	wantsSync func() bool
	onSynced  func()
	// onFailed is called after each failure.
	onFailed func()
	// onMissed is called before a write that may lack states: a whole state, or events
	// when one of them could not be taken.
	onMissed func(GapCause)
	// fake is nil if the source is what its options say.
	fake fakeSource
	// outside is nil if only the engine writes the store.
	outside outsideWrites[T]
	// holder is nil if the store does not keep its objects in memory.
	holder Holder

	// guard is nil unless guard mode is on; guarded is the context until whose end it is, if
	// guardUntil has started it.
	guard   *guard.Session
	guarded context.Context

	started atomic.Bool

	// version is the one reached; it is never ahead of the store. epoch is that of
	// [Position].
	version Version
	epoch   string
	// synced says that the store has had one whole state.
	synced bool
	next   nextRead
	waits  waits
	// expiredAt is the last version from which a watch has expired.
	expiredAt Version
	traits    traits
	recheck   recheck
	// restart describes the content that the store had at the start. durable is the
	// store, if it keeps content and there is no replica.
	restart restart
	durable durable
	// loaded says that the store, or a sink, was asked for what it keeps.
	loaded bool
	// startedEmpty says that the store was empty at the start and still is. Then
	// filler takes the first state in pieces, and filled makes it visible.
	startedEmpty bool
	filler       Filler[T]
	filled       func(Position) error
	suspicion    suspicion
	renames      renames
	unreadable   unreadable
	// shortWatches counts watches in a row that ended within a second.
	shortWatches int
	// lostOpenings counts watches in a row that were lost before they were open.
	lostOpenings int
	internal     retryWindow
	deleted      tombstones
	pace         repairPace
	shard        shardState
}

// NewReflector returns a reflector from source into store. If the store is also a
// [Reader], a relist writes only the differences. If it is a [Resyncer], it is
// resynced.
func NewReflector[T any](source Source[T], store Store[T], opts Options[T]) (*Reflector[T], error) {
	if source == nil || store == nil {
		return nil, fmt.Errorf("tarn: a reflector needs a source and a store (%q has source %v, store %v)", opts.Name, source != nil, store != nil)
	}
	if len(opts.Sinks) > 0 {
		return nil, fmt.Errorf("tarn: %q: only a replica feeds sinks: use NewReplica, or leave out Options.Sinks", opts.Name)
	}
	r := newReflector(source, opts)
	r.apply = store.Apply
	if readable, ok := store.(ReadStore[T]); ok {
		r.reader = readable
		r.holder, _ = As[Holder](store)
		r.outside, _ = As[outsideWrites[T]](store)
	} else {
		r.replace = store.Replace
	}
	if s, ok := As[Resyncer](store); ok {
		r.resync = s.Resync
	}
	if r.durable = durableOf(store); r.durable.Durable != nil && r.reader != nil {
		r.fillFrom(store, Filler[T].Filled)
	}
	return r, nil
}

func newReflector[T any](source Source[T], opts Options[T]) *Reflector[T] {
	opts = opts.withDefaults()
	r := &Reflector[T]{
		source:    source,
		monitor:   newMonitor(opts.Name, opts.Clock),
		wantsSync: never,
		onSynced:  func() {},
		onFailed:  func() {},
		onMissed:  func(GapCause) {},
		next:      nextRead{cause: causeStart},
	}
	r.shard.reader = shardReaderOf(source)
	r.fake = fakeOf(source)
	r.configure(opts)
	return r
}

// configure sets the options, with which the waits begin.
func (r *Reflector[T]) configure(opts Options[T]) {
	r.opts, r.waits = opts, waits{clock: opts.Clock, series: func() func() time.Duration {
		if opts.Delay != nil {
			return opts.Delay
		}
		return DefaultBackoff.Delay(opts.Clock, opts.Jitter)
	}}
}

// held is the holder of the source's own objects; nil if a transform changes them.
func (r *Reflector[T]) held() Holder {
	if r.opts.Transform != nil || r.guard != nil {
		return nil
	}
	return r.holder
}

// Run keeps the store equal to the source until ctx ends, and returns the cause. It
// may be called once.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%s: the reflector has been started before; make a new one", r.opts.Name)
	}
	defer r.monitor.stopped()
	ctx, end := context.WithCancel(ctx)
	if r.guard == nil {
		session, stop := startGuard(ctx, r.opts)
		defer stop()
		r.guard = session
	}
	defer r.maintain(ctx)()
	defer end()
	defer r.openShard()()
	if r.durable.Durable != nil {
		defer r.durable.release()
		kept, err := r.durable.Restore(ctx)
		r.startFrom(ctx, kept, "", err)
	}
	for {
		err := r.ListAndWatch(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.report(ctx, err)
		} else if r.recheck.shardChanged() {
			continue // who changes it decides how often
		}
		r.monitor.enter(StateWaiting)
		if !pause(ctx, r.opts.Clock, r.waits.delay(err)) {
			return context.Cause(ctx)
		}
	}
}

// ListAndWatch makes one pass: it reads the whole collection and follows it
// until only another pass can help. It returns the error of the list, or of opening
// a watch. It reports the errors of streams itself.
func (r *Reflector[T]) ListAndWatch(ctx context.Context) error {
	pass, err := r.fetch(ctx)
	if err != nil {
		return err
	}
	defer pass.Close()
	if err := pass.Commit(ctx); err != nil {
		return err
	}
	return pass.Follow(ctx)
}

// Health returns the state of the reflector. It may be called at any time.
func (r *Reflector[T]) Health() Health {
	h := r.monitor.health()
	h.Shard = r.shard.health()
	return h
}

// report records a failure in Health and gives it to OnError.
func (r *Reflector[T]) report(ctx context.Context, err error) {
	r.monitor.failed(err)
	r.opts.OnError(ctx, err)
	r.onFailed()
}

// explain adds the name, the operation and the version to an error.
func (r *Reflector[T]) explain(doing string, v Version, err error) error {
	at := string(v)
	switch v {
	case Latest:
		at = "the latest version"
	case Any:
		at = "any version"
	}
	return fmt.Errorf("%s: %s %s: %w", r.opts.Name, doing, at, err)
}

// A Pass is one attempt of a [Reflector] in three steps: fetch reads the whole
// state, Commit writes it to the store, Follow keeps the store up to date. Only a
// [ReflectorAdapter] exposes it; everyone else calls Run.
type Pass[T any] struct {
	r *Reflector[T]
	// state is nil if the store has it already; see [Durable].
	state   *relisting[T]
	version Version
	cause   string
	// keyless says that the state had items whose key could not be read.
	keyless bool
	// narrowed are the objects that the store has and that belong to another shard now, if
	// nothing had to be read; see [Reflector.narrow].
	narrowed []Change[T]
	// stream continues after the state, with the timeout asked; nil if the state
	// was listed.
	stream Stream[T]
	asked  time.Duration
}

// fetch reads the whole collection, as a stream of initial events if the source can,
// else as a list. It writes nothing to the store.
func (r *Reflector[T]) fetch(ctx context.Context) (pass *Pass[T], err error) {
	defer func() { r.waits.failing = r.waits.failing || err != nil }()
	r.monitor.enter(StateListing)
	r.beginRecheck()
	r.shard.begin()
	if err := r.confirmSource(ctx); err != nil {
		return nil, err
	}
	if pass := r.narrow(); pass != nil {
		return pass, nil
	}
	if r.restart.canResume && r.next.version == notOlder {
		if pass, err := r.resume(ctx); pass != nil || err != nil && !r.canStreamInstead(err) {
			return pass, err
		}
	}
	if r.useWatchList() {
		pass, err := r.streamState(ctx)
		if err == nil || ctx.Err() != nil {
			return pass, err
		}
	}
	return r.listState(ctx)
}

// Version is that of the fetched state.
func (p *Pass[T]) Version() Version { return p.version }

// Commit brings the store to the fetched state.
func (p *Pass[T]) Commit(ctx context.Context) error {
	r := p.r
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if p.narrowed != nil {
		return p.commitNarrowed(ctx)
	}
	if p.state == nil {
		r.next.cause = causeWatchEnded
		r.checkCaughtUp()
		r.shard.taken()
		return nil
	}
	if err := p.state.commit(ctx, p.version); err != nil {
		return r.explain("the store did not take the state at", p.version, err)
	}
	p.keyless = p.state.keyless > 0
	p.state = nil
	r.version = p.version
	r.traits.versioned = p.version != ""
	r.next = nextRead{cause: causeWatchEnded}
	r.suspicion.settle()
	r.waits.readAgain()
	r.unreadable.listed(r.opts.Clock.Now(), p.keyless)
	r.deleted.clear()
	r.restart, r.startedEmpty = restart{}, false
	r.monitor.listed(p.cause, p.version)
	r.shard.taken()
	r.markSynced()
	return nil
}

// markSynced records that the store has had one whole state.
func (r *Reflector[T]) markSynced() {
	if !r.synced {
		r.synced = true
		r.onSynced()
	}
}

// Close releases the stream if Follow was not called.
func (p *Pass[T]) Close() {
	if p.stream != nil {
		p.stream.Close()
		p.stream = nil
	}
}

// rewind declares that the source went back in time.
func (r *Reflector[T]) rewind(ctx context.Context, now Version) {
	r.readNext(nextRead{cause: causeRewound, version: anyAfterRewind})
	r.waits.restart()
	r.suspicion.rewound()
	r.newEpoch()
	r.monitor.update(func(h *Health) { h.Rewinds++ })
	r.report(ctx, fmt.Errorf("%s: version %s was seen and the source is now at %s: %w; the copy is read again", r.opts.Name, r.version, now, ErrRewound))
}
