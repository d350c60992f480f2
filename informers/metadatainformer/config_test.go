package metadatainformer_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	stock "k8s.io/client-go/metadata/metadatainformer"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/informers/metadatainformer"
)

// What the informer holds is what client-go's metadata informer holds.
func TestForConfig(t *testing.T) {
	server, err := apiserver.Start(apiserver.Options{AnyNamespace: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, name := range []string{"a", "b", "c"} {
		err := server.Put(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: name, Labels: map[string]string{"app": name}},
			Data:       map[string][]byte{"password": []byte("not in the metadata")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	choose := func(o *metav1.ListOptions) { o.LabelSelector = "app!=b" }
	ours, err := metadatainformer.NewFactoryForConfig(server.Config(), 0,
		metadatainformer.WithNamespace("north"), metadatainformer.WithTweakListOptions(choose))
	if err != nil {
		t.Fatal(err)
	}
	theirs := stock.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(server.Config()), 0, "north", choose)
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	var held [2]map[string]any
	for i, factory := range []metadatainformer.SharedInformerFactory{theirs, ours} {
		ctx, cancel := context.WithCancel(t.Context())
		informer := factory.ForResource(secrets).Informer()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		held[i] = map[string]any{}
		for _, key := range informer.GetStore().ListKeys() {
			held[i][key], _, _ = informer.GetStore().GetByKey(key)
		}
		cancel()
		factory.Shutdown()
	}
	if diff := cmp.Diff(held[0], held[1]); diff != "" || len(held[1]) != 2 {
		t.Errorf("%d of 2 objects; client-go's and ours differ: %s", len(held[1]), diff)
	}
}
