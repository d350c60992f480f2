package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn/internal/reasons"
)

// classify finds the reason of an API error, as far as the engine acts on it. The
// error itself stays reachable.
func classify(err error) error { return reasons.Classify(err, isLost) }

// isLost recognises a connection that broke under a watch. client-go puts that in
// the same words as an event that could not be decoded; only the message behind
// them tells the two apart, and what is not recognised costs no more than a list.
func isLost(err error) bool {
	if !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && !apierrors.HasStatusCause(err, clientWatchDecoding) {
		return false
	}
	for _, words := range []string{"connection lost", "connection force closed", "connection reset", "broken pipe", "use of closed network connection", "i/o timeout", "unexpected EOF", "GOAWAY"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// clientWatchDecoding is the cause that client-go's watches give to errors of the
// stream.
const clientWatchDecoding metav1.CauseType = "ClientWatchDecoding"

// requestError is an error of the API with what the reader can do about it.
type requestError struct {
	verb, description, advice string
	err                       error
}

func (e *requestError) Error() string {
	s := fmt.Sprintf("failed to %s %s: %v", e.verb, e.description, e.err)
	if e.advice != "" {
		s += "; " + e.advice
	}
	return s
}

func (e *requestError) Unwrap() error { return e.err }

// advise adds what the reader can do about an error.
func (s *source) advise(verb string, err error) error {
	e := &requestError{verb: verb, description: s.description, err: err}
	switch {
	case apierrors.IsForbidden(err):
		e.advice = "grant list and watch on it, or ask for fewer namespaces"
	case apierrors.IsUnauthorized(err):
		e.advice = "the credentials are not accepted (any more)"
	case apierrors.IsNotFound(err):
		e.advice = "the server does not serve this resource: is the CRD installed, the API version right?"
	}
	return e
}

// rawWatchError is a watch's error as client-go passes it on: bare. Handlers have
// been written that compare it.
func rawWatchError(err error) error {
	if e, ok := errors.AsType[*requestError](err); ok && e.verb == "watch" {
		return e.err
	}
	if e, ok := errors.AsType[watchError](err); ok {
		return e.error
	}
	return err
}

// graceful is how long a call that should have ended with its context is waited
// for.
const graceful = 500 * time.Millisecond

// interruptible calls f and returns when it does, or when ctx has ended and f has
// still not returned a moment later.
//
// ListerWatchers from before contexts came to client-go cannot be stopped, and a
// stop must not hang on them. Such a call is left behind until the caller's own
// code returns; release then gets what nobody waits for. A call that honours its
// context is always waited for.
func interruptible[R any](ctx context.Context, f func() (R, error), release func(R)) (R, error) {
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
		r.value, r.err = f()
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		late := time.NewTimer(graceful)
		defer late.Stop()
		select {
		case r = <-done:
		case <-late.C:
			if release != nil {
				go func() {
					if r := <-done; r.err == nil && r.panicked == nil {
						release(r.value)
					}
				}()
			}
			return r.value, context.Cause(ctx)
		}
	}
	if r.panicked != nil {
		return r.value, crashed(ctx, r.panicked, r.stack)
	}
	return r.value, r.err
}

// crashed passes on a panic of user code, as utilruntime is configured: it ends the
// process, or is an error like any other.
func crashed(ctx context.Context, value any, stack []byte) error {
	klog.FromContext(ctx).Error(nil, "A lister-watcher panicked", "panic", value, "stack", string(stack))
	func() {
		defer utilruntime.HandleCrashWithContext(ctx)
		panic(value)
	}()
	return fmt.Errorf("the lister-watcher panicked: %v", value)
}
