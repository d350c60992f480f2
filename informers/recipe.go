package informers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/cache"
)

// recipe describes an informer without its client. The factory and [For] fill it in
// their own ways and make the same informer as client-go's generated constructors
// would.
type recipe struct {
	object   runtime.Object
	resource schema.GroupVersionResource
	name     *cache.InformerName // nil for none
	indexers cache.Indexers
	tweak    func(*metav1.ListOptions) // nil for none
}

// informer makes an informer of the collection of the client that open returns.
//
// open is called for each request and not once, because client may be nil, or
// not be ready, until the informer runs. client itself is only asked whether it
// supports watch lists; fake clientsets do not.
func (r recipe) informer(client any, resync time.Duration, open func() Client[runtime.Object]) cache.SharedIndexInformer {
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return open().List(ctx, r.tweaked(opts))
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return open().Watch(ctx, r.tweaked(opts))
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(requests, client), r.object, r.options(resync))
}

func (r recipe) options(resync time.Duration) cache.SharedIndexInformerOptions {
	return cache.SharedIndexInformerOptions{
		ResyncPeriod: resync,
		Indexers:     r.indexers,
		Identifier:   r.name.WithResource(r.resource),
	}
}

func (r recipe) tweaked(opts metav1.ListOptions) metav1.ListOptions {
	if r.tweak != nil {
		r.tweak(&opts)
	}
	return opts
}

// byNamespace has the index that listers of one namespace look up.
func byNamespace() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

// untyped is a client without its list type, so that all code that uses it is
// written, and compiled, once.
type untyped[L runtime.Object] struct{ client Client[L] }

func (u untyped[L]) List(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := u.client.List(ctx, opts)
	if err != nil {
		return nil, err // and not a nil L, which would not be a nil Object
	}
	return list, nil
}

func (u untyped[L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return u.client.Watch(ctx, opts)
}
