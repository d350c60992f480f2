package tarn

import (
	"context"
	"fmt"

	"github.com/tarnproject/tarn/internal/adapter"
)

// A ReplicaAdapter changes a replica before it runs. It is for package cache, whose
// informers get their transform, their resync period and their disk after they were
// made; see [adapter.Key].
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
	for _, p := range r.sections {
		p.reflector.opts = r.opts.withDefaults() // each waits by itself
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
	return nil
}

// SetDurable has the replica begin with what d restores, where d is not the store
// itself. It fails once Run has been called.
func (a ReplicaAdapter[T]) SetDurable(d interface {
	Durable
	DiskReporter
	Releaser
}) error {
	return a.Configure(func(*Options[T]) { a.replica.durable.Store(&durable{d, d, d}) })
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
	return a.reflector.fetch(ctx)
}
