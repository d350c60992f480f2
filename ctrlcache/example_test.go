package ctrlcache_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn/ctrlcache"
)

// An operator switches to Tarn by one line.
func ExampleNewCache() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		NewCache: ctrlcache.NewCache,
	})
	if err != nil {
		panic(err)
	}
	_ = mgr.Start(ctrl.SetupSignalHandler())
}

// Field selectors need no index, whatever they combine.
func ExampleNewCache_fieldSelector() {
	server := startAPIServer() // with pods, all on node n1: north/a Running, south/a Pending, west/d Failed
	defer server.Close()
	seed(server)
	pods, err := ctrlcache.NewCache(server.config(), cache.Options{Mapper: newMapper()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = pods.Start(ctx) })
	defer running.Wait()
	defer cancel()
	pods.WaitForCacheSync(ctx)

	var found corev1.PodList
	err = pods.List(ctx, &found, client.MatchingFieldsSelector{
		Selector: fields.ParseSelectorOrDie("spec.nodeName=n1,status.phase!=Running,metadata.namespace!=west"),
	})
	for _, p := range found.Items {
		fmt.Println(p.Namespace, p.Name, p.Status.Phase)
	}
	fmt.Println(err)
	// Output:
	// south a Pending
	// <nil>
}

// With both lines, what a reconciler has written is what it reads next: in several
// namespaces, and after a deletion.
func ExampleNewClient() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		NewCache:  ctrlcache.NewCache,
		NewClient: ctrlcache.NewClient,
		Cache:     cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}},
		Client: client.Options{Cache: &client.CacheOptions{
			EnableReadYourWritesConsistency: ptr.To(true),
		}},
	})
	if err != nil {
		panic(err)
	}
	_ = mgr.Start(ctrl.SetupSignalHandler())
}

// controller-runtime's own cache can run on Tarn's informers.
func ExampleNewInformer() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache: cache.Options{NewInformer: ctrlcache.NewInformer},
	})
	if err != nil {
		panic(err)
	}
	_ = mgr.Start(ctrl.SetupSignalHandler())
}
