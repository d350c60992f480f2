//go:build !tarn_client_go_0_36

package informers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/informers/metadatainformer"
	"github.com/tarnproject/tarn/kube"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func shardedServer(t *testing.T) *apiserver.Server {
	t.Helper()
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	t.Cleanup(server.Close)
	for i := range 100 {
		for _, namespace := range []string{"a", "b"} {
			meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("x", i)}
			if err := server.Put(&corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return server
}

// movedCounter is a handler that asks for moved objects.
type movedCounter struct {
	cache.ResourceEventHandlerFuncs
	in, out atomic.Int64
}

func (c *movedCounter) OnMovedIn(any)  { c.in.Add(1) }
func (c *movedCounter) OnMovedOut(any) { c.out.Add(1) }

// A factory with a sharding has one shard of the named types and all of others; a change
// moves objects, and handlers are notified of these moves only if they ask.
func TestWithSharding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := shardedServer(t)
		quarter, err := kube.ShardOf(kube.ShardByUID, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		half, err := kube.ShardOf(kube.ShardByUID, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		sharding := kube.NewSharding(quarter)
		factory, err := informers.NewSharedInformerFactoryForConfig(server.Config(), 0, informers.WithSharding(sharding, &corev1.ConfigMap{}))
		if err != nil {
			t.Fatal(err)
		}
		maps, secrets := factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets()
		var asks movedCounter
		var added, deleted atomic.Int64
		for _, handler := range []cache.ResourceEventHandler{&asks, cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { added.Add(1) }, DeleteFunc: func(any) { deleted.Add(1) },
		}} {
			if _, err := maps.Informer().AddEventHandler(handler); err != nil {
				t.Fatal(err)
			}
		}
		secrets.Informer()
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
		synctest.Wait()
		count := func() int64 {
			all, err := maps.Lister().List(labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			return int64(len(all))
		}
		if all, err := secrets.Lister().List(labels.Everything()); err != nil || len(all) != 200 {
			t.Errorf("%d of 200 secrets, %v", len(all), err)
		}
		first := count()
		if first == 0 || first > 100 || added.Load() != first {
			t.Errorf("%d of 200 config maps, and %d were added", first, added.Load())
		}
		replica, ok := cache.ReplicaOf(maps.Informer())
		if !ok {
			t.Fatal("the informer has no replica")
		}
		if h := replica.Health(); h.Shard == nil || !h.Shard.ByServer {
			t.Error(h)
		}
		for _, set := range []kube.ShardSet{half, quarter} {
			if err := sharding.Set(set); err != nil {
				t.Fatal(err)
			}
			if err := sharding.WaitTaken(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if asks.in.Load() == 0 || asks.in.Load() != asks.out.Load() || count() != first {
			t.Errorf("%d came, %d went", asks.in.Load(), asks.out.Load())
		}
		if added.Load() != first || deleted.Load() != 0 {
			t.Errorf("the handler that did not ask saw %d adds and %d deletes", added.Load(), deleted.Load())
		}
		cancel()
		factory.Shutdown()
	})
}

// All kinds of factories have shards, and four of them have everything once.
func TestWithShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := shardedServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		total := map[string]int{}
		var stop []func()
		for i := range 4 {
			typed, err := informers.NewSharedInformerFactoryForConfig(server.Config(), 0, informers.WithShard(i, 4))
			if err != nil {
				t.Fatal(err)
			}
			dynamic, err := dynamicinformer.NewFactoryForConfig(server.Config(), 0, "", nil, dynamicinformer.WithShard(i, 4))
			if err != nil {
				t.Fatal(err)
			}
			metadata, err := metadatainformer.NewFactoryForConfig(server.Config(), 0, metadatainformer.WithShard(i, 4))
			if err != nil {
				t.Fatal(err)
			}
			stop = append(stop, typed.Shutdown, dynamic.Shutdown, metadata.Shutdown)
			all := map[string]cache.SharedIndexInformer{
				"typed":    typed.Core().V1().ConfigMaps().Informer(),
				"dynamic":  dynamic.ForResource(configMaps).Informer(),
				"metadata": metadata.ForResource(configMaps).Informer(),
			}
			typed.Start(ctx.Done())
			dynamic.Start(ctx.Done())
			metadata.Start(ctx.Done())
			for name, informer := range all {
				cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
				total[name] += len(informer.GetStore().ListKeys())
			}
		}
		for name, n := range total {
			if n != 200 {
				t.Errorf("%s: the shards have %d of 200", name, n)
			}
		}
		cancel()
		for _, f := range stop {
			f()
		}
	})
}

func TestShardsThatCannotBe(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	_, typed := informers.NewSharedInformerFactoryForConfig(server.Config(), 0, informers.WithShard(4, 4))
	_, dynamic := dynamicinformer.NewFactoryForConfig(server.Config(), 0, "", nil, dynamicinformer.WithShard(4, 4))
	_, metadata := metadatainformer.NewFactoryForConfig(server.Config(), 0, metadatainformer.WithShard(4, 4))
	for _, err := range []error{typed, dynamic, metadata} {
		if err == nil || !strings.Contains(err.Error(), "no shard 4 of 4") {
			t.Error(err)
		}
	}
	var told []string
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { told = append(told, err.Error()) }}
	informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, informers.WithShard(0, 2))
	if len(told) != 1 || !strings.Contains(told[0], "make the factory from a rest.Config") {
		t.Errorf("told: %q", told)
	}
}
