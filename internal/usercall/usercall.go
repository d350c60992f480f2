// Package usercall calls the program's own code, such as a lister-watcher or a transport. That
// code may panic, or not return when its context ends.
package usercall

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// gracePeriod is how long to wait for a call after its context has ended.
const gracePeriod = 500 * time.Millisecond

// Do calls f and returns when it does, or when ctx has ended and f has still not
// returned a moment later.
//
// Some code cannot be stopped: a ListerWatcher from before client-go had contexts, or a
// credential plugin that waits for a person to log in. A stop must not hang on it, so
// its goroutine is left behind until it returns; release then gets the result. A call
// that honours its context is always waited for.
//
// A panic of f ends the process, or is an error that says what panicked, as utilruntime
// is configured. A call that ends its goroutine, as t.Fatal in the transport of a test
// does, is an error too.
func Do[R any](ctx context.Context, what string, f func() (R, error), release func(R)) (R, error) {
	type result struct {
		value    R
		err      error
		panicked any
		stack    []byte
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if r.panicked = recover(); r.panicked != nil {
				r.stack = debug.Stack()
			}
			done <- r
		}()
		r.err = fmt.Errorf("the %s ended its goroutine", what) // unless it returns
		r.value, r.err = f()
	}()
	r, ended := await(ctx, done)
	switch {
	case !ended:
		if release != nil {
			go func() {
				if r := <-done; r.err == nil && r.panicked == nil {
					release(r.value)
				}
			}()
		}
		return r.value, context.Cause(ctx)
	case r.panicked != nil:
		return r.value, crashed(ctx, what, r.panicked, r.stack)
	}
	return r.value, r.err
}

// Recover is deferred by a goroutine that calls the program's own code. It makes a panic an error,
// or ends the process, as [Do].
func Recover(ctx context.Context, what string, err *error) {
	if v := recover(); v != nil {
		*err = crashed(ctx, what, v, debug.Stack())
	}
}

// Wait waits until done is closed, or ctx has ended and it is still open a moment later.
func Wait(ctx context.Context, done <-chan struct{}) { await(ctx, done) }

// await receives from done, unless ctx has ended and nothing came a moment later.
func await[T any](ctx context.Context, done <-chan T) (received T, ok bool) {
	select {
	case received = <-done:
		return received, true
	case <-ctx.Done():
	}
	late := time.NewTimer(gracePeriod)
	defer late.Stop()
	select {
	case received = <-done:
		return received, true
	case <-late.C:
		return received, false
	}
}

// crashed reports a panic as utilruntime is configured.
func crashed(ctx context.Context, what string, value any, stack []byte) error {
	klog.FromContext(ctx).Error(nil, "A call panicked", "of", what, "panic", value, "stack", string(stack))
	func() {
		defer utilruntime.HandleCrashWithContext(ctx)
		panic(value)
	}()
	return fmt.Errorf("the %s panicked: %v", what, value)
}
