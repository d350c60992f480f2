package ctrlcache_test

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
)

func TestReview3DeleteOutside(t *testing.T) {
	for _, whole := range []bool{false, true} {
		x, c := deleting(t, cache.Options{DefaultLabelSelector: label("deep")})
		x.namesBy(c)
		p := newPod("north", "outside")
		if err := c.Create(x.ctx, p); err != nil {
			t.Fatal(err)
		}
		x.namesBy(c)
		if !whole {
			p = newPod("north", "outside")
		}
		if err := c.Delete(x.ctx, p); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(x.ctx, 2*time.Second)
		if err := c.List(ctx, &corev1.PodList{}); err != nil {
			t.Error(whole, err)
		}
		cancel()
	}
}

func TestReview3RemoveAfterStop(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	c, err := ctrlcache.NewCache(api.Config(), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	if _, err := c.GetInformer(ctx, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	cancel()
	late, lateErr := c.GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	running.Wait()
	within, done := context.WithTimeout(t.Context(), 3*time.Second)
	defer done()
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.Node{}, &corev1.Secret{}, &corev1.ConfigMap{}} {
		if err := c.RemoveInformer(within, o); err != nil {
			t.Error(err)
		}
	}
	if within.Err() != nil {
		t.Error("RemoveInformer blocks after the end")
	}
	_, _ = late, lateErr
}

func TestReview3IndexBlocksNobody(t *testing.T) {
	api := apiserver.New(apiserver.Options{})
	defer api.Close()
	_ = api.Put(richPod(1))
	for _, m := range []struct {
		name string
		make cache.NewCacheFunc
	}{makers[0], makers[2]} {
		c, ctx := rev2start(t, m.make, api.Config(), cache.Options{})
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		if err := c.IndexField(ctx, &corev1.Pod{}, "x", func(o client.Object) []string {
			if o.GetName() == "p2" {
				entered <- struct{}{}
				<-leave
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := c.List(ctx, &corev1.PodList{}); err != nil {
			t.Fatal(err)
		}
		p2 := richPod(2)
		p2.Finalizers = nil
		_ = api.Put(p2)
		<-entered
		done := make(chan struct{})
		go func() {
			_ = c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "p1"}, &corev1.Pod{})
			close(done)
		}()
		select {
		case <-done:
			t.Log(m.name, "reads go on")
		case <-time.After(time.Second):
			t.Log(m.name, "reads wait for the index function")
		}
		close(leave)
		<-done
		_ = api.Delete(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p2"}})
	}
}

// the resync, the handlers of several namespaces and their removal
func TestReview3Handlers(t *testing.T) {
	api := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer api.Close()
	c, ctx := rev2start(t, ctrlcache.NewCache, api.Config(), cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}})
	i, err := c.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan string, 100)
	h, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { added <- o.(*corev1.Pod).Namespace }})
	if err != nil {
		t.Fatal(err)
	}
	<-h.HasSyncedChecker().Done()
	if !h.HasSynced() {
		t.Error("not synced")
	}
	for _, ns := range []string{"a", "b", "c"} {
		p := richPod(0)
		p.Namespace = ns
		_ = api.Put(p)
	}
	<-added
	<-added
	again, err := c.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := again.RemoveEventHandler(h); err != nil {
			t.Error(err)
		}
	}
	p := richPod(1)
	p.Namespace = "a"
	_ = api.Put(p)
	for c.Get(ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}) != nil {
		time.Sleep(time.Millisecond)
	}
	if len(added) > 0 {
		t.Error("told after removal")
	}
	_ = ptr.To(1)
}
