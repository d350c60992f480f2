package cache_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	framework "github.com/tarnproject/tarn/cache/testing"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lake", Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// running starts an informer and returns how to stop it.
func running(informer cache.SharedInformer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	return func() { cancel(); <-done }
}

// A shared informer with an index, and a handler that is called for each pod.
func ExampleNewSharedIndexInformer() {
	source := framework.NewFakeControllerSource() // a real one is a ListWatch on a client
	defer source.Shutdown()
	source.Add(pod("heron", "north"))

	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{
		"node": func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil },
	})
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			fmt.Println("added", obj.(*corev1.Pod).Name, isInInitialList)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer running(informer)()
	cache.WaitForCacheSync(context.Background().Done(), informer.HasSynced, handle.HasSynced)
	pods, err := informer.GetIndexer().ByIndex("node", "north")
	fmt.Println(len(pods), "on north,", err)

	// Output:
	// added heron true
	// 1 on north, <nil>
}

// What client-go's interfaces do not offer: wait for your own write, and read the
// health of the copy.
func ExampleReplicaOf() {
	source := framework.NewFakeControllerSource()
	defer source.Shutdown()
	source.Add(pod("heron", "north"))
	informer := cache.NewSharedInformer(source, &corev1.Pod{}, 0)
	defer running(informer)()

	replica, ok := cache.ReplicaOf(informer)
	if !ok {
		return // client-go's own informer
	}
	ctx := context.Background()
	if err := replica.WaitSynced(ctx); err != nil {
		fmt.Println(err) // says why
		return
	}
	written := pod("teal", "south")
	source.Add(written) // gives it its version
	if err := replica.WaitFor(ctx, tarn.Version(written.ResourceVersion)); err != nil {
		fmt.Println(err)
		return
	}
	_, found := replica.Get("lake/teal")
	health := replica.Health()
	fmt.Println(found, health.State, health.Version, health.Err)

	// Output: true watching 2 <nil>
}

// A reflector keeps a store equal to a source, and nothing else.
func ExampleNewReflector() {
	source := framework.NewFakeControllerSource()
	defer source.Shutdown()
	source.Add(pod("heron", "north"))

	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflector(source, &corev1.Pod{}, store, 0)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); reflector.RunWithContext(ctx) }()
	cache.WaitForCacheSync(ctx.Done(), func() bool { return len(store.ListKeys()) == 1 })
	fmt.Println(store.ListKeys(), store.LastStoreSyncResourceVersion())
	cancel()
	<-done

	// Output: [lake/heron] 1
}
