package metadatainformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/roster"
	"github.com/tarnproject/tarn/kube"
)

type (
	// SharedInformerFactory makes at most one informer for each resource, starts
	// those that were requested, and waits for them.
	SharedInformerFactory = metadatainformer.SharedInformerFactory
	// TweakListOptionsFunc changes the options of every list and watch.
	TweakListOptionsFunc = metadatainformer.TweakListOptionsFunc
)

// SharedInformerOption chooses something about a factory.
type SharedInformerOption func(*settings)

type settings struct {
	namespace string
	resync    time.Duration
	tweak     TweakListOptionsFunc
	transform cache.TransformFunc
	keep      kube.Keeper
	shards    roster.Shards[schema.GroupVersionResource]
}

// WithTransform lets transform change every object before it is stored.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(s *settings) { s.transform = transform }
}

// NewSharedInformerFactory makes a factory for all namespaces.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory makes a factory for one namespace, or all if
// it is empty, whose requests go through tweakListOptions.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) SharedInformerFactory {
	return fromClient(client, settings{namespace: namespace, resync: defaultResync, tweak: tweakListOptions})
}

// NewSharedInformerFactoryWithOptions makes a factory for all namespaces.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration, options ...SharedInformerOption) SharedInformerFactory {
	s := settings{namespace: metav1.NamespaceAll, resync: defaultResync}
	for _, choose := range options {
		choose(&s)
	}
	return fromClient(client, s)
}

func fromClient(client metadata.Interface, s settings) SharedInformerFactory {
	if s.keep.Sink != nil {
		roster.ReportUnkept()
	}
	s.shards.ReportWhole()
	return roster.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return s.informer(client, gvr, roster.ByNamespace())
	})
}

// NewFilteredMetadataInformer makes one informer.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return settings{namespace: namespace, resync: resyncPeriod, tweak: tweakListOptions}.informer(client, gvr, indexers)
}

func (s settings) informer(client metadata.Interface, gvr schema.GroupVersionResource, indexers cache.Indexers) informers.GenericInformer {
	return roster.FromClient(s.recipe(gvr, indexers), client, func() roster.Client[*metav1.PartialObjectMetadataList] {
		return client.Resource(gvr).Namespace(s.namespace)
	})
}

func (s settings) recipe(gvr schema.GroupVersionResource, indexers cache.Indexers) roster.Recipe {
	return roster.Recipe{
		Resource: gvr, Namespace: s.namespace, Resync: s.resync, Indexers: indexers, Tweak: s.tweak, Transform: s.transform,
		Example: &metav1.PartialObjectMetadata{},
		Lister: func(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
			return metadatalister.NewRuntimeObjectShim(metadatalister.New(indexer, gvr))
		},
	}
}
