package cache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// syncing is something of ours that syncs: it reports what it waits for.
type syncing struct{ done chan struct{} }

func newSyncing() syncing { return syncing{make(chan struct{})} }

func (s syncing) HasSynced() bool {
	select {
	case <-s.done:
		return true
	default:
		noteSynced(s.done)
		return false
	}
}

// foreign is a HasSynced that reports nothing.
func foreign(synced *atomic.Bool) InformerSynced { return synced.Load }

func TestWaitForCacheSyncEndsWithoutTimeMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a, b, queue := newSyncing(), newSyncing(), NewDeltaFIFO(queueObjectKey, nil)
		both := func() bool { return a.HasSynced() && b.HasSynced() }
		result := make(chan bool)
		go func() { result <- WaitForCacheSync(t.Context().Done(), b.HasSynced, both, queue.HasSynced) }()
		for _, sync := range []func(){
			func() { close(a.done) },
			func() { close(b.done) },
			func() { _ = queue.Add(queueObject{"a", 1}) },
		} {
			synctest.Wait()
			select {
			case <-result:
				t.Fatal("the wait ended before all had synced")
			default:
			}
			sync()
		}
		if !<-result {
			t.Error("the wait failed")
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the wait took %v", took)
		}
	})
}

func TestWaitForCacheSyncPolls(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		asks  func(ours syncing, synced *atomic.Bool) InformerSynced
		want  time.Duration
	}{
		{"a foreign function", 250 * time.Millisecond, func(_ syncing, synced *atomic.Bool) InformerSynced {
			return foreign(synced)
		}, 300 * time.Millisecond},
		{"one that does not only depend on ours", 2550 * time.Millisecond, func(ours syncing, synced *atomic.Bool) InformerSynced {
			return func() bool { return ours.HasSynced() || synced.Load() }
		}, 2600 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var synced atomic.Bool
				time.AfterFunc(c.after, func() { synced.Store(true) })
				if !WaitForCacheSync(t.Context().Done(), c.asks(newSyncing(), &synced)) {
					t.Error("the wait failed")
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("the wait took %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestWaitForCacheSyncStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var never atomic.Bool
		for name, f := range map[string]InformerSynced{"ours": newSyncing().HasSynced, "foreign": foreign(&never)} {
			stop, result := make(chan struct{}), make(chan bool)
			go func() { result <- WaitForCacheSync(stop, f) }()
			synctest.Wait()
			close(stop)
			if <-result {
				t.Errorf("%s: a stopped wait succeeded", name)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("%s: stopping took %v", name, took)
			}
		}
		stopped := make(chan struct{})
		close(stopped)
		if !WaitForCacheSync(stopped) || !WaitForCacheSync(stopped, func() bool { return true }) {
			t.Error("nothing to wait for, but the wait failed")
		}
		for range 20 { // which of two closed channels a select takes is random
			late := newSyncing()
			if WaitForCacheSync(stopped, func() bool {
				synced := late.HasSynced()
				if !synced {
					close(late.done) // while the wait begins
				}
				return synced
			}) {
				t.Fatal("a wait that was stopped before succeeded by what synced afterwards")
			}
		}
	})
}

// TestWaitForCacheSyncLetsHandlersCatchUp starts workers, as programs do, when the wait
// has ended: the first state is in their queue by then, if client-go's would be.
func TestWaitForCacheSyncLetsHandlersCatchUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		each   time.Duration
		before time.Duration // the wait begins so much later than the informer
		want   time.Duration
	}{
		{"quick handlers", 0, 0, 10 * time.Millisecond},
		{"handlers that take a while", 20 * time.Millisecond, 0, 50 * time.Millisecond},
		{"handlers that take longer than a poll", time.Second, 0, poll},
		{"an informer that has synced before", time.Second, 20 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				informer := NewSharedIndexInformer(&ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						time.Sleep(10 * time.Millisecond)
						list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "2"}}
						for _, name := range []string{"a", "b"} {
							list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}})
						}
						return list, nil
					},
					WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
						if o.SendInitialEvents != nil {
							return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
						}
						return watch.NewFake(), nil
					},
				}, &corev1.Pod{}, 0, Indexers{})
				if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(any) { time.Sleep(c.each) }}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { informer.RunWithContext(ctx) })
				defer running.Wait()
				defer cancel()
				time.Sleep(c.before)
				begun := time.Now()
				if !WaitForCacheSync(ctx.Done(), informer.HasSynced) {
					t.Error("the wait failed")
				}
				if took := time.Since(begun); took != c.want {
					t.Errorf("the wait took %v, want %v", took, c.want)
				}
			})
		})
	}
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
	syncing
	name string
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

func TestWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var lines []string
		ctx, cancel := context.WithCancelCause(logTo(t.Context(), &lines))
		a, b, c := checker{newSyncing(), "a"}, checker{newSyncing(), "b"}, checker{newSyncing(), "c"}
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
