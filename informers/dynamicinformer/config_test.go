package dynamicinformer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// What the informer holds is what client-go's dynamic client reads.
func TestForConfig(t *testing.T) {
	server, err := apiserver.Start(apiserver.Options{AnyNamespace: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for i := range 20 {
		if err := server.Put(configMap("north", fmt.Sprint("a", i)), configMap("south", fmt.Sprint("b", i))); err != nil {
			t.Fatal(err)
		}
	}
	factory, err := dynamicinformer.NewFactoryForConfig(server.Config(), 0, "north", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	informer := factory.ForResource(configMaps).Informer()
	factory.Start(ctx.Done())
	if synced := factory.WaitForCacheSync(ctx.Done()); !synced[configMaps] {
		t.Fatal(synced)
	}

	list, err := dynamic.NewForConfigOrDie(server.Config()).Resource(configMaps).Namespace("north").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(informer.GetStore().ListKeys()); n != 20 || len(list.Items) != 20 {
		t.Errorf("the informer holds %d objects, the server has %d", n, len(list.Items))
	}
	for i := range list.Items {
		got, _, _ := informer.GetStore().Get(&list.Items[i])
		if diff := cmp.Diff(&list.Items[i], got); diff != "" {
			t.Error(diff)
		}
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"same": "for all"}}
}

// A resource without a name cannot be listed; the error handler gets that failure.
func TestForConfigBadResource(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	defer server.Close()
	factory, err := dynamicinformer.NewFactoryForConfig(server.Config(), 0, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	bad := configMaps
	bad.Resource = ""
	informer := factory.ForResource(bad).Informer()
	told := make(chan error, 100)
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { told <- err }); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	if err := <-told; err == nil {
		t.Error("no error")
	}
}
