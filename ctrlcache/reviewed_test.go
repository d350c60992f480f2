package ctrlcache_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
)

// TestInformerThatReturnsAtOnce waits for a user's informer whose Run is only a
// beginning, as that of controllertest is.
func TestInformerThatReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := controllertest.NewFakeInformer()
		c, err := ctrlcache.NewCache(&rest.Config{}, cache.Options{Mapper: newMapper(), NewInformer: func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
			return fake
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = c.Start(ctx) })
		defer running.Wait()
		defer cancel()
		synctest.Wait()
		time.AfterFunc(time.Second, fake.Synced)
		if err := c.Get(ctx, podA, &corev1.Pod{}); !apierrors.IsNotFound(err) {
			t.Errorf("the read ended with: %v", err)
		}
		if !c.WaitForCacheSync(ctx) {
			t.Error("the cache does not sync")
		}
	})
}

// TestOptionsAreTakenOnce lets the caller continue to write to the maps of the options.
func TestOptionsAreTakenOnce(t *testing.T) {
	server := newAPIServer(t)
	seed(server)
	all, own := map[string]cache.Config{"north": {}}, map[string]cache.Config{"north": {}}
	c, err := ctrlcache.NewCache(server.config(), cache.Options{Mapper: newMapper(), DefaultNamespaces: all,
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: own}}})
	if err != nil {
		t.Fatal(err)
	}
	all["south"], own["south"] = cache.Config{}, cache.Config{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	defer running.Wait()
	defer cancel()
	c.WaitForCacheSync(ctx)
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ConfigMapList{}} {
		if err := c.List(ctx, list, client.InNamespace("south")); err == nil {
			t.Errorf("%T: a namespace that was added later is cached", list)
		}
	}
}

// TestRemovalByTheErrorHandler removes an informer that cannot sync from within the
// handler that gets the error.
func TestRemovalByTheErrorHandler(t *testing.T) {
	server := newAPIServer(t)
	server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "pods are not for you" }
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	var c cache.Cache
	removed := make(chan error, 1)
	c, err := ctrlcache.NewCache(server.config(), cache.Options{Mapper: newMapper(), DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {
		removed <- c.RemoveInformer(ctx, &corev1.Pod{})
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
	if err := <-removed; err != nil || ctx.Err() != nil {
		t.Errorf("the removal waited for itself: %v", err)
	}
}

// TestLabelsOfAWriteAreThoseWritten changes an object after it was written.
func TestLabelsOfAWriteAreThoseWritten(t *testing.T) {
	x := running(t, cache.Options{DefaultLabelSelector: label("deep")})
	c := x.client(ctrlcache.NewClient)
	x.namesBy(c)
	x.server.hold("")
	pod := newPod("north", "new")
	pod.Labels = map[string]string{"lake": "deep"}
	if err := c.Create(x.ctx, pod); err != nil {
		t.Fatal(err)
	}
	pod.Labels["lake"] = "shallow"
	if x.late("", func() error { return c.Get(x.ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}) }) {
		t.Error("the read did not wait")
	}
}

// TestDeleteByWhoMayNotRead needs no permission that the delete does not.
func TestDeleteByWhoMayNotRead(t *testing.T) {
	x, c := deleting(t, cache.Options{})
	x.namesBy(c)
	x.server.mu.Lock()
	x.server.refuse = func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			return http.StatusForbidden, "reading is not for you"
		}
		return 0, ""
	}
	x.server.mu.Unlock()
	if err := c.Delete(x.ctx, newPod("north", "a")); err != nil {
		t.Error(err)
	}
}

// TestDeleteOfWhatIsNotSelected would hang if it waited for a copy that never
// receives the object.
func TestDeleteOfWhatIsNotSelected(t *testing.T) {
	for _, known := range []bool{true, false} {
		x, c := deleting(t, cache.Options{DefaultLabelSelector: label("deep")})
		x.namesBy(c)
		pod := newPod("north", "outside")
		if err := c.Create(x.ctx, pod); err != nil {
			t.Fatal(err)
		}
		if !known {
			pod = newPod("north", "outside")
		}
		if err := c.Delete(x.ctx, pod); err != nil {
			t.Fatal(err)
		}
		x.namesBy(c)
	}
}

// TestEmptyCollectionsSync reads what has no objects from a server that streams
// its lists.
func TestEmptyCollectionsSync(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	for _, bookmarks := range []bool{true, false} {
		c, err := ctrlcache.NewCache(api.Config(), cache.Options{DefaultEnableWatchBookmarks: &bookmarks})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var running sync.WaitGroup
		running.Go(func() { _ = c.Start(ctx) })
		c.WaitForCacheSync(ctx)
		if err := c.List(ctx, &corev1.PodList{}); err != nil {
			t.Errorf("bookmarks %v: %v", bookmarks, err)
		}
		cancel()
		running.Wait()
	}
}
