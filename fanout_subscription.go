package tarn

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// SubscribeOptions shape a [Subscription]. The zero value is a good choice.
type SubscribeOptions struct {
	// Name stands in reports; the subscriber's number if empty.
	Name string
	// Bound is how many changes may wait before they are folded to the latest
	// per key; 0 means the larger of 10,000 and the number of keys.
	Bound int
	// Syncs says whether Sync changes are wanted too: objects offered again
	// unchanged. It is asked each time there are some, must answer at once and
	// must not call the replica; nil means no.
	Syncs func() bool
	// Inline leaves it to the caller to run the subscription, by Run, instead of
	// giving it a goroutine.
	Inline bool
	// OnPanic, if set, isolates the subscriber: a panic of its function is
	// handed here, with the stack, and the next change is delivered. Without it
	// a panic is logged and goes on, which ends the process.
	OnPanic func(value any, stack []byte)
}

// Lag is how far a subscriber is behind.
type Lag struct {
	// Pending counts the changes not yet handed over.
	Pending int
	// Age is how long the oldest of them has waited.
	Age time.Duration
}

// A Subscription hands the changes of a replica to one function, in order and
// one at a time, at the function's own pace.
//
//   - First comes an Add with Initial for each object that was there.
//   - For each key: an Add only if it was absent for the subscriber, an Update or
//     Delete only if it was present, with Old as it was last given.
//   - A subscriber that falls behind too far gets the changes of a key folded
//     into one, or into a Delete and an Add if the object was created anew.
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

// handOver is how many changes a subscriber takes from its backlog at once: few
// enough that a stalled one holds little beyond its bound, enough that the lock
// is not felt.
const handOver = 32

// Synced is closed when the function has been given the replica's first whole
// state.
func (s *Subscription[T]) Synced() <-chan struct{} { return s.synced }

// Done is closed when the function will not be called again.
func (s *Subscription[T]) Done() <-chan struct{} { return s.done }

// Close ends the subscription. A call of the function may still be running; Done
// tells when it has returned. What is pending is dropped. The function itself
// may call Close.
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

// Lag tells how far the function is behind.
func (s *Subscription[T]) Lag() Lag {
	n, since := s.follower.backlog.lag()
	lag := Lag{Pending: n}
	if n > 0 {
		lag.Age = s.fanout.clock.Now().Sub(since)
	}
	return lag
}

// Run delivers in the caller's goroutine, until the subscription or the replica
// or ctx ends. It is for a subscription that was made Inline, and may be called
// once.
func (s *Subscription[T]) Run(ctx context.Context) {
	if s.begun.CompareAndSwap(false, true) {
		s.run(ctx)
	}
}

// run delivers until the backlog is closed or ctx ends.
func (s *Subscription[T]) run(ctx context.Context) {
	defer close(s.done)
	defer s.fanout.leave(s.follower)
	defer faultsPanic(s.fanout.guard != nil)()
	backlog := s.follower.backlog
	buf := make([]Change[T], 0, handOver)
	for {
		buf = backlog.take(ctx, buf)
		if len(buf) == 0 {
			return
		}
		for i, c := range buf {
			if backlog.over(ctx) {
				return
			}
			buf[i] = Change[T]{}
			if c.Type == marked {
				close(s.synced)
				continue
			}
			s.hand(c)
			backlog.handed()
		}
	}
}

// hand calls the function.
func (s *Subscription[T]) hand(c Change[T]) {
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
