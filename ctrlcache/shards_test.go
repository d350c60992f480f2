package ctrlcache_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/ctrlcache"
	"github.com/tarnproject/tarn/kube"
)

type movedHandler struct {
	toolscache.ResourceEventHandlerFuncs
	in, out atomic.Int64
}

func (c *movedHandler) OnMovedIn(any)  { c.in.Add(1) }
func (c *movedHandler) OnMovedOut(any) { c.out.Add(1) }

// A cache has one shard of the named kinds, which may change, and all objects of others.
func TestShardedCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		for i := range 100 {
			meta := metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("x", i)}
			if err := server.Put(&corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}); err != nil {
				t.Fatal(err)
			}
		}
		sharding := kube.NewSharding(part(t, 0, 2))
		c, err := ctrlcache.With(ctrlcache.Settings{Sharding: sharding, Sharded: []client.Object{&corev1.ConfigMap{}}})(server.Config(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Start(ctx); err != nil {
				t.Error(err)
			}
		})
		defer running.Wait()
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			t.Fatal("the cache does not sync")
		}
		var moved movedHandler
		informer, err := c.GetInformer(ctx, &corev1.ConfigMap{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddEventHandler(&moved); err != nil {
			t.Fatal(err)
		}
		count := func(list client.ObjectList, items func() int) int {
			t.Helper()
			if err := c.List(ctx, list); err != nil {
				t.Fatal(err)
			}
			return items()
		}
		var maps corev1.ConfigMapList
		var secrets corev1.SecretList
		half := count(&maps, func() int { return len(maps.Items) })
		if half == 0 || half == 100 {
			t.Errorf("%d of 100 config maps", half)
		}
		if n := count(&secrets, func() int { return len(secrets.Items) }); n != 100 {
			t.Errorf("%d of 100 secrets", n)
		}
		if err := sharding.Set(part(t, 1, 2)); err != nil {
			t.Fatal(err)
		}
		if err := sharding.WaitTaken(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := count(&maps, func() int { return len(maps.Items) }); n != 100-half {
			t.Errorf("the other half has %d of %d", n, 100-half)
		}
		if in, out := moved.in.Load(), moved.out.Load(); int(in) != 100-half || int(out) != half {
			t.Errorf("%d came and %d went", in, out)
		}
	})
}

// TestWritesToOtherShards writes through a client whose reads wait for writes. A server that
// selects by shard sends no event of objects of other shards, and a bookmark each minute.
func TestWritesToOtherShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{AnyNamespace: true})
		defer server.Close()
		sharding := kube.NewSharding(part(t, 0, 2))
		c, err := ctrlcache.With(ctrlcache.Settings{Sharding: sharding})(server.Config(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = c.Start(ctx) })
		defer running.Wait()
		defer cancel()
		writer, err := ctrlcache.NewClient(server.Config(), client.Options{Cache: &client.CacheOptions{
			Reader: c, EnableReadYourWritesConsistency: ptr.To(true),
		}})
		if err != nil || !c.WaitForCacheSync(ctx) {
			t.Fatal(err)
		}
		var found corev1.ConfigMapList
		if err := c.List(ctx, &found); err != nil {
			t.Fatal(err)
		}
		began, own := time.Now(), 0
		for i := range 20 {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("x", i)}}
			has := func(when string, want bool) {
				t.Helper()
				if err := writer.List(ctx, &found); err != nil {
					t.Fatal(err)
				}
				got := slices.ContainsFunc(found.Items, func(o corev1.ConfigMap) bool {
					return o.Name == object.Name && o.ResourceVersion == object.ResourceVersion
				})
				if want = want && sharding.Wanted().Has("a", string(object.UID)); got != want {
					t.Errorf("%s: %t, wanted %t", when, got, want)
				}
			}
			if err := writer.Create(ctx, object); err != nil {
				t.Fatal(err)
			}
			if sharding.Wanted().Has("a", string(object.UID)) {
				own++
			}
			has("created", true)
			object.Data = map[string]string{"changed": "yes"}
			if err := writer.Update(ctx, object); err != nil {
				t.Fatal(err)
			}
			has("updated", true)
			if err := writer.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: object.Name}}); err != nil {
				t.Fatal(err)
			}
			has("deleted", false)
		}
		if took := time.Since(began); took > time.Second || own == 0 || own == 20 {
			t.Errorf("the reads waited %v; %d of 20 were of the cache's shard", took, own)
		}
	})
}

func part(t *testing.T, i, n int) kube.ShardSet {
	t.Helper()
	set, err := kube.ShardOf(kube.ShardByUID, i, n)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestNoSuchShardOfACache(t *testing.T) {
	server := newAPIServer(t)
	if _, err := ctrlcache.WithShard(4, 4)(server.config(), cache.Options{Mapper: newMapper()}); err == nil || !strings.Contains(err.Error(), "no shard 4 of 4") {
		t.Error(err)
	}
	unknown := &metav1.PartialObjectMetadata{}
	if _, err := ctrlcache.With(ctrlcache.Settings{Sharded: []client.Object{unknown}})(server.config(), cache.Options{Mapper: newMapper()}); err == nil {
		t.Error("a kind that is not known is sharded")
	}
}
