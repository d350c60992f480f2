package informers

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/wired"
	"github.com/tarnproject/tarn/kube"
)

// ours is the factory that client-go's typed packages get: they request an informer
// and say how client-go would build it, and get the one that this package builds.
type ours struct{ *factory }

// InformerFor returns the informer for the type of object. A type that the table
// lacks, such as one of a newer client-go, gets the informer of stock.
func (o ours) InformerFor(object runtime.Object, stock internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	c, ok := known().byType[reflect.TypeOf(object)]
	if !ok {
		return o.factory.InformerFor(object, stock)
	}
	return o.factory.InformerFor(object, o.builder(c))
}

// builder says how the informer for a collection is built.
func (f *factory) builder(c collection) internalinterfaces.NewInformerFunc {
	return func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		r := recipe{
			object:   c.example(),
			resource: c.resource,
			name:     f.name,
			indexers: byNamespace(),
			tweak:    f.tweak,
		}
		if f.wire != nil {
			return wired.Informer(f.wire, f.reads(c), r.object, r.options(resync), f.keep, f.shards.Of(c.object))
		}
		if reader := f.clientsets.of(client, c); reader != nil {
			return wired.Informer(reader, f.reads(c), r.object, r.options(resync), kube.Keeper{}, nil)
		}
		return r.informer(client, resync, func() Client[runtime.Object] { return c.in(client, f.namespace) })
	}
}

// reads is the collection as package kube reads it.
func (f *factory) reads(c collection) kube.Collection {
	from := kube.Collection{Resource: c.resource, Namespace: f.namespace, Tweak: f.tweak}
	if c.clusterWide {
		from.Namespace = ""
	}
	if kinds, _, err := scheme.Scheme.ObjectKinds(c.example()); err == nil {
		from.Kind = kinds[0]
	}
	return from
}

// GenericInformer is an informer with a lister that does not know the type.
type GenericInformer = informers.GenericInformer

// ForResource returns the informer for a resource that is known only at run time.
// It fails for resources without a Go type in client-go.
func (f *factory) ForResource(resource schema.GroupVersionResource) (GenericInformer, error) {
	c, ok := known().byResource[resource]
	if !ok {
		return nil, fmt.Errorf("no informer found for %v", resource)
	}
	return generic{
		informer: f.InformerFor(c.example(), f.builder(c)),
		resource: resource.GroupResource(),
	}, nil
}

// generic is the GenericInformer of ForResource.
type generic struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

func (g generic) Informer() cache.SharedIndexInformer { return g.informer }

func (g generic) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}
