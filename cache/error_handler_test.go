package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
)

// Objects that cannot be transformed or indexed reach the watch error handler, with
// their key.
func TestBadObjectsReachTheErrorHandler(t *testing.T) {
	newRecorder(nil).catchReports(t)
	synctest.Test(t, func(t *testing.T) {
		pod := func(name string) v1.Pod {
			return v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"}}
		}
		lw := &ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []v1.Pod{pod("a"), pod("b"), pod("c")}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		informer := NewSharedIndexInformer(lw, &v1.Pod{}, 0, Indexers{"by": func(o any) ([]string, error) {
			if o.(*v1.Pod).Name == "b" {
				return nil, errors.New("cannot be indexed")
			}
			return nil, nil
		}})
		if err := informer.SetTransform(func(o any) (any, error) {
			if o.(*v1.Pod).Name == "a" {
				return nil, errors.New("cannot be transformed")
			}
			return o, nil
		}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var reported []string
		if err := informer.SetWatchErrorHandler(func(r *Reflector, err error) {
			mu.Lock()
			defer mu.Unlock()
			bad, ok := errors.AsType[tarn.ObjectErrors](err)
			if errors.Is(err, tarn.ErrNoInitialEnd) {
				return // the fake watch streams no initial events
			}
			if !ok || len(bad) != 1 {
				t.Errorf("not a bad object: %v", err)
				return
			}
			if !strings.Contains(err.Error(), string(bad[0].Key)) || !errors.Is(err, bad[0].Err) {
				t.Errorf("%q names neither the object nor its error", err)
			}
			reported = append(reported, string(bad[0].Key)+": "+bad[0].Err.Error())
		}); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() { informer.Run(stop); close(done) }()
		time.Sleep(time.Minute)
		close(stop)
		<-done
		slices.Sort(reported)
		if len(reported) != 2 || !strings.HasSuffix(reported[0], "cannot be transformed") || !strings.Contains(reported[1], "cannot be indexed") {
			t.Errorf("reported: %q", reported)
		}
	})
}

// A watch error handler can ask the reflector that it is given how far it has come, as
// with client-go.
func TestErrorHandlersSeeTheVersion(t *testing.T) {
	listing(t)
	clients := map[string]func(l library, lw ListerWatcher, handler WatchErrorHandlerWithContext) (run func(context.Context)){
		"shared informer": func(l library, lw ListerWatcher, handler WatchErrorHandlerWithContext) func(context.Context) {
			informer := l.newSharedInformer(lw, &v1.ConfigMap{}, SharedIndexInformerOptions{})
			must(informer.SetWatchErrorHandlerWithContext(handler))
			return informer.RunWithContext
		},
		"controller of a queue": func(l library, lw ListerWatcher, handler WatchErrorHandlerWithContext) func(context.Context) {
			return l.newController(&Config{
				Queue: l.newQueue(l.newIndexer()), ListerWatcher: lw, ObjectType: &v1.ConfigMap{},
				Process: func(any, bool) error { return nil }, WatchErrorHandlerWithContext: handler,
			}).RunWithContext
		},
	}
	play := func(t *testing.T, l library, make func(library, ListerWatcher, WatchErrorHandlerWithContext) func(context.Context)) (seen []string) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex // guards the three
			failure := errors.New("no list")
			var server *watch.FakeWatcher
			fail := func(err error) *watch.FakeWatcher {
				mu.Lock()
				defer mu.Unlock()
				failure = err
				return server
			}
			lw := &ListWatch{
				ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
					mu.Lock()
					defer mu.Unlock()
					return &v1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, failure
				},
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
					mu.Lock()
					defer mu.Unlock()
					server = watch.NewFakeWithChanSize(10, false)
					return server, failure
				},
			}
			stop := running(make(l, lw, func(_ context.Context, r *Reflector, err error) {
				mu.Lock()
				defer mu.Unlock()
				now := fmt.Sprintf("%v: %q of %s", errors.Is(err, failure), r.LastSyncResourceVersion(), r.TypeDescription())
				if len(seen) == 0 || seen[len(seen)-1] != now {
					seen = append(seen, now)
				}
			}))
			time.Sleep(10 * time.Second)
			fail(nil)
			time.Sleep(time.Minute)
			fail(nil).Add(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "9"}})
			synctest.Wait()
			fail(errors.New("no watch")).Stop()
			time.Sleep(20 * time.Second)
			stop()
		})
		return seen
	}
	for name, make := range clients {
		t.Run(name, func(t *testing.T) {
			if got, want := play(t, ours, make), play(t, clientGo, make); !slices.Equal(got, want) {
				t.Errorf("ours showed %q, client-go %q", got, want)
			}
		})
	}
}
