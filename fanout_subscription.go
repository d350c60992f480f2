package tarn

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// SubscribeOptions configure a [Subscription]. The zero value is a good choice.
type SubscribeOptions struct {
	// Name appears in reports; the subscriber's number if empty.
	Name string
	// Bound is how many changes may wait before they are folded to the latest
	// per key; 0 means the larger of 10,000 and the number of keys.
	Bound int
	// Syncs reports whether to deliver Sync changes too: unchanged objects, again.
	// It is called each time there are some, and before the start, must return at once
	// and must not call the replica; nil means no. A subscriber that has it before the
	// start gets no Adds of what a program put into the store itself: the first list
	// tells what became of that, as a Sync if nothing did.
	Syncs func() bool
	// Moved asks for the Adds and Deletes of objects that came from, or went to, another
	// shard; see [Change.Moved]. A subscriber that does not ask gets the next change of an
	// object that came as an Update or Delete.
	Moved bool
	// Inline starts no goroutine: the caller runs the subscription by Run.
	Inline bool
	// OnPanic, if set, isolates the subscriber: it gets a panic of the function with
	// the stack, and the next change is delivered. Without it a panic is logged and
	// propagates, which ends the process.
	OnPanic func(value any, stack []byte)
}

// Lag is how far a subscriber is behind.
type Lag struct {
	// Pending counts the undelivered changes.
	Pending int
	// Age is how long the oldest of them has waited.
	Age time.Duration
}

// A Subscription delivers the changes of a replica to one function, in order and one
// at a time, at the function's own pace.
//
//   - It begins with an Add with Initial for each present object.
//   - For each key: an Add only if the subscriber does not have it, an Update or
//     Delete only if it does, with Old as the state that was delivered last.
//     Objects that changed the shard are an exception, see [SubscribeOptions].
//   - A subscriber that falls behind its bound gets the changes of a key folded
//     into one, or into a Delete and an Add if the object was created again.
type Subscription[T any] struct {
	opts     SubscribeOptions
	deliver  func(Change[T])
	fanout   *fanout[T]
	follower *follower[T]

	// begun says that run has been called, or never will be.
	begun  atomic.Bool
	synced chan struct{}
	done   chan struct{}
}

// handOver is how many changes a subscriber takes from its backlog at once: few, so
// that a stalled one holds little beyond its bound, but enough to make the cost of the
// lock small.
const handOver = 32

// Synced is closed when the replica's first whole state has been delivered.
func (s *Subscription[T]) Synced() <-chan struct{} { return s.synced }

// Done is closed when the function will not be called again.
func (s *Subscription[T]) Done() <-chan struct{} { return s.done }

// Close ends the subscription and drops pending changes. A call of the function may
// still be running; wait on Done for its return. The function itself may call Close.
func (s *Subscription[T]) Close() {
	s.fanout.leave(s.follower)
	s.abandon()
}

// abandon ends a subscription that has not begun.
func (s *Subscription[T]) abandon() {
	if s.begun.CompareAndSwap(false, true) {
		close(s.done)
	}
}

// Lag returns how far the function is behind.
func (s *Subscription[T]) Lag() Lag {
	n, since := s.follower.backlog.lag()
	lag := Lag{Pending: n}
	if n > 0 {
		lag.Age = s.fanout.clock.Now().Sub(since)
	}
	return lag
}

// Run delivers in the caller's goroutine, until the subscription, the replica or ctx
// ends. It is for an Inline subscription, and may be called once.
func (s *Subscription[T]) Run(ctx context.Context) {
	if s.begun.CompareAndSwap(false, true) {
		s.run(ctx)
	}
}

// run delivers until the backlog is closed or ctx ends.
func (s *Subscription[T]) run(ctx context.Context) {
	defer close(s.done)
	defer s.fanout.leave(s.follower)
	backlog := s.follower.backlog
	buf := make([]Change[T], 0, handOver)
	for {
		buf = backlog.take(ctx, buf)
		if len(buf) == 0 {
			return
		}
		for i, c := range buf {
			if backlog.ended(ctx) {
				return
			}
			buf[i] = Change[T]{}
			if c.Type == marked {
				close(s.synced)
				continue
			}
			s.call(c)
			backlog.handed()
		}
	}
}

// call calls the function.
func (s *Subscription[T]) call(c Change[T]) {
	defer faultsPanic()()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		v = explainFault(v)
		stack := debug.Stack()
		if s.opts.OnPanic != nil {
			s.opts.OnPanic(v, stack)
			return
		}
		s.fanout.logger.Error("a subscriber panicked", "subscriber", s.opts.Name, "key", c.Key, "panic", fmt.Sprint(v), "stack", string(stack))
		panic(v)
	}()
	s.deliver(c)
}
