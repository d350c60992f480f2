package tarn

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"time"
)

// A Replica is a live local copy of a collection: a reflector, a store, and the
// followers of the store's changes.
//
//   - Reads answer from the store, at once and from one state, even if the source is
//     not reachable; Health returns the age of the content.
//   - The content is empty before Run. After Run has returned, reads show the last
//     state.
type Replica[T any] struct {
	// opts has no defaults filled in, so that they depend on what Configure changes.
	opts    Options[T]
	store   ReadStore[T]
	durable durable
	fanout  *fanout[T]
	started atomic.Bool
	// sections has those that the replica has now.
	sections sectionSet[T]
	// synced and ended are closed when all sections are synced or have ended.
	synced, ended chan struct{}
	// done is closed when Run has returned.
	done chan struct{}
}

// NewReplica returns a replica of source in store. Only the replica may write to the
// store.
func NewReplica[T any](source Source[T], store ReadStore[T], opts Options[T]) (*Replica[T], error) {
	if source == nil || store == nil {
		return nil, fmt.Errorf("tarn: a replica needs a source and a store (%q has source %v, store %v)", opts.Name, source != nil, store != nil)
	}
	r := &Replica[T]{opts: opts, store: store}
	r.connect([]*section[T]{{reflector: newReflector(source, opts)}})
	return r, nil
}

func (r *Replica[T]) name() string { return r.opts.withDefaults().Name }

// identical compares two clocks, which may be of a type that == panics on.
func identical(a, b Clock) bool { return reflect.ValueOf(a).Comparable() && a == b }

// Run keeps the copy up to date until ctx ends, and returns the cause after every
// subscriber's function has returned. It may be called once.
func (r *Replica[T]) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%s: the replica has been started before; make a new one", r.name())
	}
	defer close(r.done)
	r.sections.load()
	ctx, cancel := context.WithCancelCause(ctx)
	session, stopGuard := startGuard(ctx, r.opts.withDefaults())
	defer stopGuard()
	r.fanout.guard = session
	for _, s := range r.present() {
		s.reflector.guard = session
	}
	r.fanout.start(ctx)
	defer r.fanout.stop()
	defer cancel(ErrStopped)
	defer r.durable.release()
	r.restore(ctx)
	defer r.fanout.startSinks(ctx)()
	return r.runSections(ctx)
}

// Done is closed when Run has returned. After cancelling the context, wait on Done for
// Run to return.
func (r *Replica[T]) Done() <-chan struct{} { return r.done }

// Get returns the object under key.
func (r *Replica[T]) Get(key Key) (T, bool) { return r.store.Get(key) }

// All walks one state of the whole collection.
func (r *Replica[T]) All() iter.Seq2[Key, T] { return r.store.All() }

// Len is the number of objects.
func (r *Replica[T]) Len() int { return r.store.Len() }

// Version is that of the content.
func (r *Replica[T]) Version() Version { return r.fanout.version() }

// Health returns the state of the replica.
func (r *Replica[T]) Health() Health {
	h := r.health()
	if reporter := r.durable.disk; reporter != nil {
		disk := reporter.Disk()
		h.Disk = &disk
	}
	for _, s := range r.fanout.runners() {
		sink := s.health()
		h.Sinks = append(h.Sinks, sink)
		if _, ok := s.sink.(Restorer[T]); ok && h.Disk == nil {
			h.Disk = &sink
		}
	}
	return h
}

func (r *Replica[T]) health() Health {
	if r.sections.single {
		return r.present()[0].reflector.Health()
	}
	each, removed := r.sections.health()
	h := mergeHealth(r.name(), each)
	h.count(removed)
	if r.sections.independent {
		h.Version = ""
	}
	return h
}

// Synced is closed when the store has had the whole collection once.
func (r *Replica[T]) Synced() <-chan struct{} { return r.synced }

// WaitSynced waits until the store has had the whole collection once. When ctx ends
// first, the error contains the last failure, not just the timeout.
func (r *Replica[T]) WaitSynced(ctx context.Context) error {
	select {
	case <-r.synced:
		return nil
	default:
	}
	select {
	case <-r.synced:
		return nil
	case <-r.ended:
		return r.notSynced(ErrStopped)
	case <-ctx.Done():
		return r.notSynced(context.Cause(ctx))
	}
}

func (r *Replica[T]) notSynced(why error) error {
	h := r.Health()
	switch {
	case h.Err != nil:
		return fmt.Errorf("%s: not synced: %w (gave up: %w)", h.Name, h.Err, why)
	case h.State == StateIdle:
		return fmt.Errorf("%s: not synced: the replica was not started: %w", h.Name, why)
	case h.FromDisk:
		return fmt.Errorf("%s: not synced: the copy is from disk, %s old, and has not caught up with the source yet (%s): %w", h.Name, h.Age.Round(time.Second), h.State, why)
	default:
		return fmt.Errorf("%s: not synced: the source has not answered in full yet (%s): %w", h.Name, h.State, why)
	}
}

// WaitFor waits until reads show the state at version v or a later one: after a
// write, wait for the version that the write returned, and read it.
//
// Versions that cannot be ordered cannot be waited for: [ErrOpaqueVersion].
func (r *Replica[T]) WaitFor(ctx context.Context, v Version) error {
	return r.waitFor(ctx, everywhere, v)
}

// WaitForKey is WaitFor for the section of one key: it does not wait for the other
// sections.
func (r *Replica[T]) WaitForKey(ctx context.Context, key Key, v Version) error {
	for _, p := range r.present() {
		if p.prefix != "" && key.HasPrefix(p.prefix) {
			return r.waitFor(ctx, p.state, v)
		}
	}
	return r.waitFor(ctx, everywhere, v)
}

func (r *Replica[T]) waitFor(ctx context.Context, section *sectionState, v Version) error {
	if _, ok := v.Compare(v); !ok {
		return fmt.Errorf("%s: waiting for version %q: %w", r.Health().Name, v, ErrOpaqueVersion)
	}
	for {
		reached, wait, err := r.fanout.await(section, v)
		if err != nil {
			return fmt.Errorf("%s: waiting for version %s: %w", r.Health().Name, v, err)
		}
		if reached {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			r.fanout.cancelWait(section, wait)
			return r.notReached(v, context.Cause(ctx))
		}
	}
}

func (r *Replica[T]) notReached(v Version, why error) error {
	h := r.Health()
	switch {
	case h.Err != nil:
		return fmt.Errorf("%s: version %s not reached, the copy is at %q: %w (gave up: %w)", h.Name, v, r.Version(), h.Err, why)
	case h.State == StateIdle:
		return fmt.Errorf("%s: version %s not reached: the replica was not started: %w", h.Name, v, why)
	default:
		return fmt.Errorf("%s: version %s not reached, the copy is at %q: %w", h.Name, v, r.Version(), why)
	}
}

// Changes follows the copy: first an Add with Initial for each object, then each
// change in order, at the reader's pace. A reader that falls behind gets the changes
// of a key folded into one. It ends with ctx, or when the replica stops.
func (r *Replica[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		f, err := r.fanout.join(0, never)
		if err != nil {
			return
		}
		defer r.fanout.leave(f)
		buf := make([]Change[T], 0, handOver)
		for {
			buf = f.backlog.take(ctx, buf)
			if len(buf) == 0 {
				return
			}
			for _, c := range buf {
				if f.backlog.ended(ctx) || c.Type != marked && !yield(c) {
					return
				}
			}
		}
	}
}

// Subscribe calls deliver for each change; see [Subscription]. The calls begin
// with Run and end before it returns.
func (r *Replica[T]) Subscribe(deliver func(Change[T]), opts SubscribeOptions) (*Subscription[T], error) {
	if deliver == nil {
		return nil, fmt.Errorf("%s: a subscriber needs a function", r.Health().Name)
	}
	return r.fanout.subscribe(deliver, opts)
}
