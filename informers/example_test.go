package informers_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
)

// A factory is used as client-go's is; only the import path is another.
func ExampleNewSharedInformerFactoryWithOptions() {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: "a"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "south", Name: "b"}},
	)

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("north"))
	defer factory.Shutdown() // waits for the informers
	defer cancel()           // which this ends

	pods := factory.Core().V1().Pods()
	handler, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { fmt.Println("added", o.(*corev1.Pod).Name) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		fmt.Println(err)
		return
	}
	cache.WaitFor(ctx, "", handler.HasSyncedChecker()) // the handler has seen it all

	found, err := pods.Lister().List(labels.Everything())
	fmt.Println(len(found), "pod", err)
	// Output:
	// added a
	// 1 pod <nil>
}

// A resource whose name is known only at run time.
func ExampleNewSharedInformerFactory() {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)

	_, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	fmt.Println(err)
	_, err = factory.ForResource(corev1.SchemeGroupVersion.WithResource("lakes"))
	fmt.Println(err)
	// Output:
	// <nil>
	// no informer found for /v1, Resource=lakes
}
