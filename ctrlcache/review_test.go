package ctrlcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/tarnproject/tarn/ctrlcache"
)

type anyMapper struct{ meta.RESTMapper }

func (anyMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{Scope: meta.RESTScopeNamespace}, nil
}

// R1: fake informer whose Run returns at once
func TestReviewFakeInformer(t *testing.T) {
	for _, m := range makers {
		if m.name == "controller-runtime on our informers" || m.name == "ours on client-go's informers" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := controllertest.NewFakeInformer()
				c, err := m.make(&rest.Config{}, cache.Options{Mapper: anyMapper{}, NewInformer: func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
					return fake
				}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = c.Start(ctx) }()
				synctest.Wait()
				time.AfterFunc(time.Second, fake.Synced)
				err = c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Service{})
				if !apierrors.IsNotFound(err) {
					t.Errorf("get: %v", err)
				}
				if !c.WaitForCacheSync(ctx) {
					t.Error("not synced")
				}
				cancel()
				<-done
			})
		})
	}
}

// R2: options' maps changed afterwards
func TestReviewOptionsMapsAreTaken(t *testing.T) {
	runScenarios(t, map[string]scenario{"maps": {
		options: func() cache.Options { return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}}} },
		play:    func(x *stage) { x.list(&corev1.PodList{}) },
	}})
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			server := newAPIServer(t)
			seed(server)
			namespaces := map[string]cache.Config{"north": {}}
			c, err := m.make(server.config(), cache.Options{Mapper: newMapper(), DefaultNamespaces: namespaces})
			if err != nil {
				t.Fatal(err)
			}
			namespaces["south"] = cache.Config{}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			var running sync.WaitGroup
			running.Go(func() { _ = c.Start(ctx) })
			defer running.Wait()
			defer cancel()
			if !c.WaitForCacheSync(ctx) {
				t.Fatal("not synced")
			}
			var pods corev1.PodList
			if err := c.List(ctx, &pods); err != nil {
				t.Fatal(err)
			}
			if len(pods.Items) != 2 {
				t.Errorf("%d pods", len(pods.Items))
			}
		})
	}
}

// R3: RemoveInformer from the watch error handler
func TestReviewRemoveFromWatchErrorHandler(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			server := newAPIServer(t)
			seed(server)
			server.mu.Lock()
			server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "no" }
			server.mu.Unlock()
			var c cache.Cache
			var once sync.Once
			removed := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			c, err := m.make(server.config(), cache.Options{Mapper: newMapper(), DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {
				once.Do(func() { removed <- c.RemoveInformer(ctx, &corev1.Pod{}) })
			}})
			if err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			running.Go(func() { _ = c.Start(ctx) })
			defer running.Wait()
			defer cancel()
			if _, err := c.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := <-removed; err != nil {
				t.Fatal(err)
			}
			if ctx.Err() != nil || time.Since(begun) > 3*time.Second {
				t.Errorf("blocked for %v", time.Since(begun))
			}
		})
	}
}

// R4: labels changed after a write
func TestReviewLabelsOfAWriteAreTaken(t *testing.T) {
	x := running(t, cache.Options{DefaultLabelSelector: label("deep")})
	c := x.client(ctrlcache.NewClient)
	x.namesBy(c)
	x.server.hold("")
	pod := newPod("north", "new")
	pod.Labels = map[string]string{"lake": "deep"}
	if err := c.Create(x.ctx, pod); err != nil {
		t.Fatal(err)
	}
	pod.Labels["lake"] = "shallow" // for the caller's next use of the object
	if x.late("", func() error { return c.Get(x.ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}) }) {
		t.Error("did not wait")
	}
}

// R5: delete without permission to get
func TestReviewDeleteWithoutGet(t *testing.T) {
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			x := running(t, cache.Options{})
			c := x.client(newClient)
			x.namesBy(c)
			x.server.mu.Lock()
			x.server.refuse = func(r *http.Request) (int, string) {
				if r.Method == http.MethodGet {
					return http.StatusForbidden, "no get"
				}
				return 0, ""
			}
			x.server.mu.Unlock()
			if err := c.Delete(x.ctx, newPod("north", "a")); err != nil {
				t.Error(err)
			}
		})
	}
}

// R6: concurrent GetInformer/RemoveInformer/Get/List under load
func TestReviewRemoveUnderLoad(t *testing.T) {
	x := running(t, twoNamespaces)
	stop := make(chan struct{})
	time.AfterFunc(1500*time.Millisecond, func() { close(stop) })
	var all sync.WaitGroup
	var reads, removes atomic.Int64
	loop := func(f func() error) {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(); err != nil && !apierrors.IsTimeout(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		loop(func() error { reads.Add(1); return x.cache.List(x.ctx, &corev1.PodList{}) })
		loop(func() error { return x.cache.Get(x.ctx, podA, emptyMetadata(podKind)) })
		loop(func() error {
			i, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			if err != nil {
				return err
			}
			h, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
				_ = x.cache.Get(x.ctx, podA, &corev1.Pod{})
			}})
			if err != nil {
				if i.IsStopped() {
					return nil
				}
				var s interface{ IsStopped() bool }
				_ = s
				return nil
			}
			_ = h
			return nil
		})
	}
	loop(func() error { removes.Add(1); return x.cache.RemoveInformer(x.ctx, &corev1.Pod{}) })
	n := 0
	loop(func() error {
		n++
		x.server.put("pods", pod("north", fmt.Sprint("p", n%50), "n1", "Running", "deep"))
		time.Sleep(time.Millisecond)
		return nil
	})
	all.Wait()
	t.Log(reads.Load(), removes.Load())
}

// R7: RemoveInformer right after GetInformer (run not begun)
func TestReviewRemoveAtOnce(t *testing.T) {
	x := running(t, cache.Options{})
	for range 200 {
		if _, err := x.cache.GetInformer(x.ctx, &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		if err := x.cache.RemoveInformer(x.ctx, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		if x.ctx.Err() != nil {
			t.Fatal("blocked")
		}
	}
}

// R8: wrong list type
func TestReviewWrongLists(t *testing.T) {
	x := running(t, cache.Options{})
	err := x.cache.List(x.ctx, &metav1.PartialObjectMetadataList{})
	t.Log(err)
	if err == nil {
		t.Error("no kind")
	}
	u := emptyLakes()
	u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	t.Log(x.cache.List(x.ctx, u), len(u.Items))
	var target *cache.ErrResourceNotCached
	_ = errors.As(err, &target)
}
