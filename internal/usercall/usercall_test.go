package usercall

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// A call is waited for while its context lives, and for a moment after that. What it returns
// later is released.
func TestDo(t *testing.T) {
	errStop := errors.New("stop")
	for name, c := range map[string]struct {
		takes, stop time.Duration
		want        string
		err         error
		released    string
	}{
		"in time":          {takes: time.Hour, stop: 2 * time.Hour, want: "value"},
		"a moment late":    {takes: time.Hour + gracePeriod/2, stop: time.Hour, want: "value"},
		"late":             {takes: 2 * time.Hour, stop: time.Hour, err: errStop, released: "value"},
		"after an old end": {takes: time.Hour, stop: 0, err: errStop, released: "value"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(c.stop, func() { cancel(errStop) })
				var released string
				got, err := Do(ctx, "lake", func() (string, error) {
					time.Sleep(c.takes)
					return "value", nil
				}, func(late string) { released = late })
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				if got != c.want || err != c.err || released != c.released {
					t.Errorf("%q, %v, released %q; wanted %q, %v, released %q", got, err, released, c.want, c.err, c.released)
				}
			})
		})
	}
}

// A panic is an error if it does not end the process.
func TestDoPanics(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	_, err := Do(t.Context(), "lake", func() (string, error) { panic("too deep") }, nil)
	if err == nil || !strings.Contains(err.Error(), "the lake panicked: too deep") {
		t.Error(err)
	}
}

// A panic in the goroutine that recovers is an error too, and goes to the handlers of panics.
func TestRecover(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	var seen []any
	utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, v any) { seen = append(seen, v) }}
	call := func() (again any, err error) {
		defer func() { again = recover() }()
		func() {
			defer Recover(t.Context(), "lake", &err)
			panic("too deep")
		}()
		return nil, err
	}
	utilruntime.ReallyCrash = false
	if again, err := call(); again != nil || err == nil || err.Error() != "the lake panicked: too deep" {
		t.Errorf("%v, then a panic with %v", err, again)
	}
	utilruntime.ReallyCrash = true
	if again, _ := call(); again != "too deep" {
		t.Errorf("the process does not end: %v", again)
	}
	if len(seen) != 2 || seen[0] != "too deep" || seen[1] != "too deep" {
		t.Errorf("the handlers were given %v", seen)
	}
}

// A call that ends its goroutine, as t.Fatal does in the transport of a test, is an error.
func TestDoEndsItsGoroutine(t *testing.T) {
	_, err := Do(t.Context(), "lake", func() (string, error) {
		runtime.Goexit()
		return "", nil
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "the lake ended its goroutine") {
		t.Error(err)
	}
}
