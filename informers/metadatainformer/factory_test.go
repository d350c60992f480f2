package metadatainformer_test

import (
	"context"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	stock "k8s.io/client-go/metadata/metadatainformer"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/metadatainformer"
)

var lakes = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lakes"}

func newClient(t *testing.T) *fake.FakeMetadataClient {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(scheme, lake("north", "a"), lake("south", "b"))
}

func lake(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Lake"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"},
	}
}

func mark(o any) (any, error) {
	o.(*metav1.PartialObjectMetadata).Labels = map[string]string{"seen": "yes"}
	return o, nil
}

// The same questions to client-go's factories and ours get the same answers.
func TestTheSameAsStock(t *testing.T) {
	type factory = metadatainformer.SharedInformerFactory
	for name, pair := range map[string][2]func(*fake.FakeMetadataClient) factory{
		"all namespaces": {
			func(c *fake.FakeMetadataClient) factory { return stock.NewSharedInformerFactory(c, 0) },
			func(c *fake.FakeMetadataClient) factory { return metadatainformer.NewSharedInformerFactory(c, 0) },
		},
		"one namespace": {
			func(c *fake.FakeMetadataClient) factory {
				return stock.NewFilteredSharedInformerFactory(c, 0, "south", nil)
			},
			func(c *fake.FakeMetadataClient) factory {
				return metadatainformer.NewFilteredSharedInformerFactory(c, 0, "south", nil)
			},
		},
		"transformed": {
			func(c *fake.FakeMetadataClient) factory {
				return stock.NewSharedInformerFactoryWithOptions(c, 0, stock.WithTransform(mark))
			},
			func(c *fake.FakeMetadataClient) factory {
				return metadatainformer.NewSharedInformerFactoryWithOptions(c, 0, metadatainformer.WithTransform(mark))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seen [2]map[string]string
			for i, make := range pair {
				synctest.Test(t, func(t *testing.T) { seen[i] = held(t, make(newClient(t)), i == 1) })
			}
			if len(seen[0]) == 0 || len(seen[0]) != len(seen[1]) {
				t.Errorf("client-go holds %v, tarn %v", seen[0], seen[1])
			}
			for key, label := range seen[0] {
				if got, ok := seen[1][key]; !ok || got != label {
					t.Errorf("%s: client-go has %q, tarn %q (%v)", key, label, got, ok)
				}
			}
		})
	}
}

// held runs a factory and returns what its lister finds.
func held(t *testing.T, factory metadatainformer.SharedInformerFactory, ours bool) map[string]string {
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	generic := factory.ForResource(lakes)
	factory.Start(ctx.Done())
	if synced := factory.WaitForCacheSync(ctx.Done()); !synced[lakes] {
		t.Errorf("synced: %v", synced)
	}
	if _, ok := cache.ReplicaOf(generic.Informer()); ok != ours {
		t.Errorf("the informer is a %T", generic.Informer())
	}
	found, err := generic.Lister().List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range found {
		m := o.(*metav1.PartialObjectMetadata)
		all[m.Namespace+"/"+m.Name] = m.Labels["seen"]
	}
	return all
}
