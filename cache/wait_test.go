package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// A wait asks when client-go would.
func TestWaitForCacheSyncPolls(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		0:                      0,
		time.Millisecond:       100 * time.Millisecond,
		250 * time.Millisecond: 300 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			synced := func() bool { return time.Since(start) >= after }
			if !WaitForCacheSync(t.Context().Done(), func() bool { return true }, synced) {
				t.Error("the wait failed")
			}
			if took := time.Since(start); took != want {
				t.Errorf("synced after %s, and the wait took %s", after, took)
			}
		})
	}
}

func TestWaitForCacheSyncStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop, result := make(chan struct{}), make(chan bool)
		go func() { result <- WaitForCacheSync(stop, func() bool { return false }) }()
		time.Sleep(5500 * time.Microsecond)
		start := time.Now()
		close(stop)
		if <-result {
			t.Error("a stopped wait succeeded")
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("stopping took %v", took)
		}
		if !WaitForCacheSync(stop) || !WaitForCacheSync(stop, func() bool { return true }) {
			t.Error("nothing to wait for, but the wait failed")
		}
	})
}

// logTo collects log lines.
func logTo(ctx context.Context, lines *[]string) context.Context {
	return logr.NewContext(ctx, funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{}))
}

func TestNamedWaitsSayWhoWaits(t *testing.T) {
	handled := collectHandledErrors(t)
	yes, no := func() bool { return true }, func() bool { return false }
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if !WaitForNamedCacheSync("me", nil, yes) || WaitForNamedCacheSync("me", stopped.Done(), no) {
		t.Error("wrong results")
	}
	var lines []string
	if !WaitForNamedCacheSyncWithContext(logTo(t.Context(), &lines), yes) || WaitForNamedCacheSyncWithContext(logTo(stopped, &lines), no) {
		t.Error("wrong results")
	}
	want := []string{
		`"level"=0 "msg"="Waiting for caches to sync"`, `"level"=0 "msg"="Caches are synced"`,
		`"level"=0 "msg"="Waiting for caches to sync"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
	if len(*handled) != 2 || !strings.HasPrefix((*handled)[0], "Unable to sync caches") {
		t.Errorf("reported %q", *handled)
	}
}

type checker struct {
	done chan struct{}
	name string
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

func TestWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var lines []string
		ctx, cancel := context.WithCancelCause(logTo(t.Context(), &lines))
		a, b, c := checker{make(chan struct{}), "a"}, checker{make(chan struct{}), "b"}, checker{make(chan struct{}), "c"}
		result := make(chan bool)
		go func() { result <- WaitFor(ctx, "things", c, a, b) }()
		synctest.Wait()
		close(b.done)
		synctest.Wait()
		cancel(errors.New("enough"))
		if <-result {
			t.Error("the wait succeeded")
		}
		if IsDone(a) || !IsDone(b) {
			t.Error("IsDone is wrong")
		}
		want := []string{
			`"level"=0 "msg"="Waiting" "for"="things"`,
			`"level"=0 "msg"="Done waiting" "for"="things" "instance"="b"`,
			`"level"=0 "msg"="Timed out waiting" "for"="things" "cause"="enough" "instances"=["a" "c"]`,
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
		lines = nil
		close(a.done)
		close(c.done)
		if !WaitFor(ctx, "", a, b, c) || !WaitFor(ctx, "") {
			t.Error("all is done, but the wait failed because its context had ended")
		}
		if len(lines) > 0 || time.Since(start) != 0 {
			t.Errorf("logged %q, took %v", lines, time.Since(start))
		}
	})
}

// handlerHolder is an informer with one handler.
type handlerHolder struct {
	SharedInformer
	removed bool
	err     error
}

func (h *handlerHolder) RemoveEventHandler(ResourceEventHandlerRegistration) error {
	h.removed = true
	return h.err
}

type stoppable struct {
	ResourceEventHandlerRegistration
	stopped chan struct{}
}

func (s stoppable) ShutdownChan() <-chan struct{} { return s.stopped }

func TestShutDownEventHandlerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informer, handle, result := &handlerHolder{}, stoppable{stopped: make(chan struct{})}, make(chan error, 1)
		go func() { result <- ShutDownEventHandler(informer, handle) }()
		synctest.Wait()
		if len(result) > 0 || !informer.removed {
			t.Errorf("did not wait: %d results, removed %v", len(result), informer.removed)
		}
		close(handle.stopped)
		if err := <-result; err != nil {
			t.Error(err)
		}
		if err := ShutDownEventHandler(informer, nil); err == nil || !strings.Contains(err.Error(), "does not support ShutdownChan()") {
			t.Errorf("a handle that cannot be waited for gives %v", err)
		}
		informer.err = errors.New("foreign handle")
		if err := ShutDownEventHandler(informer, handle); err != informer.err {
			t.Errorf("got %v", err)
		}
	})
}
