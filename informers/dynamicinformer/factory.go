package dynamicinformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/roster"
)

type (
	// DynamicSharedInformerFactory makes at most one informer for each resource,
	// starts those that were requested, and waits for them.
	DynamicSharedInformerFactory = dynamicinformer.DynamicSharedInformerFactory
	// TweakListOptionsFunc changes the options of every list and watch.
	TweakListOptionsFunc = dynamicinformer.TweakListOptionsFunc
)

// NewDynamicSharedInformerFactory makes a factory for all namespaces.
func NewDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory makes a factory for one namespace, or
// all if it is empty, whose requests go through tweakListOptions.
//
//go:noinline // or its function literal has the name of the caller's, and informers that of this line
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return roster.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return NewFilteredDynamicInformer(client, gvr, namespace, defaultResync, roster.ByNamespace(), tweakListOptions)
	})
}

// NewFilteredDynamicInformer makes one informer.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	r := recipe(gvr, namespace, resyncPeriod, indexers, tweakListOptions)
	return roster.FromClient(r, client, func() roster.Client[*unstructured.UnstructuredList] {
		return client.Resource(gvr).Namespace(namespace)
	})
}

func recipe(gvr schema.GroupVersionResource, namespace string, resync time.Duration, indexers cache.Indexers, tweak TweakListOptionsFunc) roster.Recipe {
	return roster.Recipe{
		Resource: gvr, Namespace: namespace, Resync: resync, Indexers: indexers, Tweak: tweak,
		Example: &unstructured.Unstructured{},
		Lister: func(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
			return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(indexer, gvr))
		},
	}
}
