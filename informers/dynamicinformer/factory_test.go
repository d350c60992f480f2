package dynamicinformer_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	stock "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
)

var lakes = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lakes"}

func lake(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Lake",
		"metadata": map[string]any{"namespace": namespace, "name": name, "resourceVersion": "1"},
	}}
}

func newClient(objects ...runtime.Object) dynamic.Interface {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{lakes: "LakeList"}, objects...)
}

// constructors of a factory for one namespace: client-go's, and ours.
var constructors = map[string]func(dynamic.Interface, time.Duration, string, dynamicinformer.TweakListOptionsFunc) dynamicinformer.DynamicSharedInformerFactory{
	"client-go": stock.NewFilteredDynamicSharedInformerFactory,
	"tarn":      dynamicinformer.NewFilteredDynamicSharedInformerFactory,
}

// The same story on both factories must give the same events.
func TestTheSameAsStock(t *testing.T) {
	seen := map[string][]string{}
	for name, construct := range constructors {
		synctest.Test(t, func(t *testing.T) {
			seen[name] = story(t, construct)
		})
	}
	if !reflect.DeepEqual(seen["client-go"], seen["tarn"]) {
		t.Errorf("client-go: %q\n     tarn: %q", seen["client-go"], seen["tarn"])
	}
	if len(seen["tarn"]) < 7 {
		t.Errorf("little has been seen: %q", seen["tarn"])
	}
}

func story(t *testing.T, construct func(dynamic.Interface, time.Duration, string, dynamicinformer.TweakListOptionsFunc) dynamicinformer.DynamicSharedInformerFactory) (seen []string) {
	ctx, cancel := context.WithCancel(t.Context())
	client := newClient(lake("north", "a"), lake("north", "b"), lake("south", "c"))
	tweaked := false
	factory := construct(client, 0, "north", func(*metav1.ListOptions) { tweaked = true })
	note := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }

	generic := factory.ForResource(lakes)
	note("the same informer again: %v", generic.Informer() == factory.ForResource(lakes).Informer())
	note("synced before the start: %v", factory.WaitForCacheSync(ctx.Done()))
	_, err := generic.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { note("add %s", o.(*unstructured.Unstructured).GetName()) },
		DeleteFunc: func(o any) { note("delete %s", o.(*unstructured.Unstructured).GetName()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	synced := factory.WaitForCacheSync(ctx.Done())
	synctest.Wait() // the handler notes too
	note("synced: %v", synced)
	slices.Sort(seen) // the adds come in any order

	if _, err := client.Resource(lakes).Namespace("north").Create(ctx, lake("north", "d"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if err := client.Resource(lakes).Namespace("north").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	listed, err := generic.Lister().ByNamespace("north").List(labels.Everything())
	note("%d listed, %v", len(listed), err)
	_, err = generic.Lister().ByNamespace("north").Get("nobody")
	note("%v; tweaked: %v", err, tweaked)

	cancel()
	factory.Shutdown()
	factory.Start(context.Background().Done())
	note("stopped: %v", generic.Informer().IsStopped())
	return seen
}

func TestAllNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		factory := dynamicinformer.NewDynamicSharedInformerFactory(newClient(lake("north", "a"), lake("south", "b")), 0)
		defer factory.Shutdown()
		defer cancel()
		informer := factory.ForResource(lakes).Informer()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		if n := len(informer.GetStore().List()); n != 2 {
			t.Errorf("%d objects of 2", n)
		}
		if _, ours := cache.ReplicaOf(informer); !ours {
			t.Errorf("the informer is a %T, not one of package cache", informer)
		}
	})
}
