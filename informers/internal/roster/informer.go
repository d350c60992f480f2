package roster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/wired"
	"github.com/tarnproject/tarn/kube"
)

// Recipe is what an informer is made of, except for where its objects come from.
type Recipe struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Resync    time.Duration
	Indexers  cache.Indexers
	Tweak     func(*metav1.ListOptions) // nil for none
	Transform cache.TransformFunc       // nil for none
	// Example is an object of the type that the informer holds.
	Example runtime.Object
	// Lister makes the lister over the informer's store.
	Lister func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
}

// ByNamespace has the index that listers of one namespace look up.
func ByNamespace() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

// Client lists and watches one collection.
type Client[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// FromClient makes the informer of the collection of the client that open returns. If
// client is one of client-go's own, the informer sends its requests and reads the answers by
// itself. Of any other client it only checks whether it supports watch lists, which fakes do
// not.
func FromClient[L runtime.Object](r Recipe, client any, open func() Client[L]) *Informer {
	if reader := wired.ClientOf(wired.RESTClientOf(client)); reader != nil {
		return FromWire(r, reader, kube.Keeper{}, nil)
	}
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			list, err := open().List(ctx, r.tweaked(opts))
			if err != nil {
				return nil, err // and not a nil L, which would not be a nil Object
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return open().Watch(ctx, r.tweaked(opts))
		},
	}
	return r.informer(cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(requests, client), r.Example, r.options()))
}

// FromWire makes the informer of the recipe's resource with package kube; with a
// Store in keep, it is kept. It has all objects if shard is nil.
func FromWire(r Recipe, client *kube.Client, keep kube.Keeper, shard *kube.Sharding) *Informer {
	from := kube.Collection{Resource: r.Resource, Namespace: r.Namespace, Tweak: r.Tweak}
	return r.informer(wired.Informer(client, from, r.Example, r.options(), keep, shard))
}

func (r Recipe) tweaked(opts metav1.ListOptions) metav1.ListOptions {
	if r.Tweak != nil {
		r.Tweak(&opts)
	}
	return opts
}

func (r Recipe) options() cache.SharedIndexInformerOptions {
	return cache.SharedIndexInformerOptions{
		ResyncPeriod:      r.Resync,
		Indexers:          r.Indexers,
		ObjectDescription: r.Resource.String(),
	}
}

func (r Recipe) informer(made cache.SharedIndexInformer) *Informer {
	if r.Transform != nil {
		_ = made.SetTransform(r.Transform) // fails only once it runs
	}
	return &Informer{informer: made, recipe: r}
}

// Informer is a GenericInformer.
type Informer struct {
	informer cache.SharedIndexInformer
	recipe   Recipe
}

// Informer returns the informer itself.
func (i *Informer) Informer() cache.SharedIndexInformer { return i.informer }

// Lister reads the informer's store.
func (i *Informer) Lister() cache.GenericLister {
	return i.recipe.Lister(i.informer.GetIndexer(), i.recipe.Resource)
}
