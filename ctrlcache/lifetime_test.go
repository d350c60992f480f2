package ctrlcache_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tarnproject/tarn/ctrlcache"
)

func TestSatisfiesWhatTheManagerAsksFor(t *testing.T) {
	c, err := ctrlcache.NewCache(newAPIServer(t).config(), cache.Options{Mapper: newMapper()})
	if err != nil {
		t.Fatal(err)
	}
	if leader, ok := c.(manager.LeaderElectionRunnable); !ok || leader.NeedLeaderElection() {
		t.Error("the cache must run without being the leader")
	}
	if _, ok := c.(manager.Runnable); !ok {
		t.Error("the cache cannot be added to a manager")
	}
	if _, err := ctrlcache.NewCache(nil, cache.Options{}); err == nil {
		t.Error("a cache without a config")
	}
}

// TestRemovalEndsRequests removes an informer from one of its own handlers: it
// returns, and nothing is watched any more.
func TestRemovalEndsRequests(t *testing.T) {
	x := running(t, twoNamespaces)
	informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	x.until("two watches", func() bool { return x.server.open.Load() == 2 })
	removed := make(chan error, 1)
	added := make(chan struct{}) // the handler is there for both namespaces
	var once sync.Once
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		<-added
		once.Do(func() { removed <- x.cache.RemoveInformer(x.ctx, &corev1.Pod{}) })
	}}); err != nil {
		t.Fatal(err)
	}
	close(added)
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	if !informer.IsStopped() {
		t.Error("the informer was removed and still runs")
	}
	x.until("no watch", func() bool { return x.server.open.Load() == 0 })
}

// TestRemovalEndsWaits lets those go who wait for an informer that is taken away.
func TestRemovalEndsWaits(t *testing.T) {
	x := running(t, cache.Options{})
	x.server.mu.Lock()
	x.server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "pods are not for you" }
	x.server.mu.Unlock()
	read := make(chan error, 1)
	go func() { read <- x.cache.Get(x.ctx, podA, &corev1.Pod{}) }()
	x.until("a request", func() bool { return len(x.server.asked("")) > 0 })
	if err := x.cache.RemoveInformer(x.ctx, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	err := <-read
	if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "removed") {
		t.Errorf("the read ended with: %v", err)
	}
}

// TestFailureToSyncSaysWhy gives the reader the server's words.
func TestFailureToSyncSaysWhy(t *testing.T) {
	x := running(t, cache.Options{})
	x.server.mu.Lock()
	x.server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "pods are not for you" }
	x.server.mu.Unlock()
	ctx, cancel := context.WithTimeout(x.ctx, 100*time.Millisecond)
	defer cancel()
	err := x.cache.List(ctx, &corev1.PodList{})
	if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "pods are not for you") {
		t.Errorf("the list ended with: %v", err)
	}
}

// TestAfterTheEnd reads what was last known, and makes nothing new.
func TestAfterTheEnd(t *testing.T) {
	server := newAPIServer(t)
	seed(server)
	c, err := ctrlcache.NewCache(server.config(), cache.Options{Mapper: newMapper()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("not synced")
	}
	informer, err := c.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Start: %v", err)
	}
	if !informer.IsStopped() {
		t.Error("Start has returned, and an informer still runs")
	}
	if err := c.Get(t.Context(), podA, &corev1.Pod{}); err != nil {
		t.Errorf("what was known before: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("what was never known: %v", err)
	}
}
