package tarn

import (
	"context"
	"fmt"

	"github.com/tarnproject/tarn/internal/adapter"
)

// A ReplicaAdapter changes a replica before it runs, and reads a part of its Health. It
// is for package cache, whose informers get their transform, their resync period and
// their sinks after their creation; see [adapter.Key].
type ReplicaAdapter[T any] struct{ replica *Replica[T] }

// AdaptReplica returns the adapter of a replica.
func AdaptReplica[T any](_ adapter.Key, r *Replica[T]) ReplicaAdapter[T] {
	return ReplicaAdapter[T]{r}
}

// Configure changes the options, which change sees as they were given. It fails
// once Run has been called. Others may use the replica meanwhile, unless Clock or
// Logger change.
func (a ReplicaAdapter[T]) Configure(change func(*Options[T])) error {
	r := a.replica
	if r.started.Load() {
		return fmt.Errorf("%s: the replica has already started", r.name())
	}
	change(&r.opts)
	opts := r.opts.withDefaults()
	newClock := !identical(opts.Clock, r.fanout.clock)
	for _, p := range r.present() {
		p.reflector.configure(r.opts.withDefaults())
		p.reflector.rename(p.fullName(opts.Name))
		if newClock {
			p.reflector.monitor.clock = opts.Clock
		}
	}
	if newClock {
		r.fanout.clock = opts.Clock
	}
	if opts.Logger != r.fanout.logger {
		r.fanout.logger = opts.Logger
	}
	r.fanout.setSinks(opts.Sinks)
	return nil
}

// Status returns State and Version of [Replica.Health] for a replica of one source. It
// costs next to nothing: clients poll an informer for them.
func (a ReplicaAdapter[T]) Status() (State, Version) {
	return a.replica.present()[0].reflector.monitor.status()
}

// outsideWrites is a store of package cache, to which programs write beside the engine
// because client-go lets them. Subscribers receive an object's delete even if the program
// removed the object from the store before.
type outsideWrites[T any] interface {
	// TakeRemoved returns, once, the object that a program removed under a key, if the
	// engine has not written the key since.
	TakeRemoved(key Key) (T, bool)
}

// fakeSource is a source of package cache that may turn out to be a fake when it is
// watched, although it was not declared as one; see [Options.Unversioned].
type fakeSource interface {
	// Fake reports whether the last watch was one that tests make; known is false if that
	// cannot be told.
	Fake() (fake, known bool)
}

// fakeOf returns the first such source in a chain of wrapped sources, or nil.
func fakeOf[T any](source Source[T]) fakeSource {
	for source != nil {
		if s, ok := source.(fakeSource); ok {
			return s
		}
		wrapper, ok := source.(interface{ Unwrap() Source[T] })
		if !ok {
			return nil
		}
		source = wrapper.Unwrap()
	}
	return nil
}

// A ReflectorAdapter runs a reflector step by step. It is for package cache, whose
// Reflector is client-go's own type and calls for one step at a time; see [adapter.Key].
type ReflectorAdapter[T any] struct{ reflector *Reflector[T] }

// AdaptReflector returns the adapter of a reflector.
func AdaptReflector[T any](_ adapter.Key, r *Reflector[T]) ReflectorAdapter[T] {
	return ReflectorAdapter[T]{r}
}

// Fetch reads the whole collection, as a stream of initial events if the source can,
// else as a list. It writes nothing to the store.
func (a ReflectorAdapter[T]) Fetch(ctx context.Context) (*Pass[T], error) {
	a.reflector.guardUntil(ctx)
	return a.reflector.fetch(ctx)
}

// A SinkAdapter feeds a sink as a replica does, with changes from its caller instead of a
// source. It is for the tests of sinks in other modules; see [adapter.Key].
type SinkAdapter[T any] struct {
	ReadStore[T]
	fanout *fanout[T]
	stop   func()
}

// AdaptSink returns the adapter of a sink whose copy is in store.
func AdaptSink[T any](_ adapter.Key, store ReadStore[T], sink Sink[T], opts Options[T]) *SinkAdapter[T] {
	opts = opts.withDefaults()
	opts.Sinks = []Sink[T]{sink}
	reflector := newReflector[T](nil, opts)
	h := newFanout(store, opts, reflector, []*section[T]{{reflector: reflector}})
	h.versionOf = func(T) Version { return "" }
	return &SinkAdapter[T]{ReadStore: store, fanout: h}
}

// Restore opens the sink and loads its content.
func (a *SinkAdapter[T]) Restore(ctx context.Context) (Kept, error) {
	kept, err := a.fanout.load(ctx, a.fanout.runners()[0], []*section[T]{{state: a.fanout.sections[0]}})
	a.stop = a.fanout.startSinks(ctx)
	return kept, err
}

// Apply writes changes to store and sink. It restores first, if that has not happened
// yet.
func (a *SinkAdapter[T]) Apply(changes []Change[T], at Position) error {
	if a.stop == nil {
		if _, err := a.Restore(context.Background()); err != nil {
			return err
		}
	}
	err := a.fanout.apply(a.fanout.sections[0], changes, at)
	if Taken(err) && !a.fanout.isSynced() {
		a.fanout.markSynced(a.fanout.sections[0])
	}
	return err
}

// Flush commits the pending changes.
func (a *SinkAdapter[T]) Flush() error { return a.fanout.runners()[0].flushNow() }

// Health is that of the sink.
func (a *SinkAdapter[T]) Health() SinkHealth { return a.fanout.runners()[0].health() }

// Close stops as a replica does.
func (a *SinkAdapter[T]) Close() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}
