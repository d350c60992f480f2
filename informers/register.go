package informers

import (
	"context"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/cache"
)

// Client lists and watches one collection; L is its list type. Generated clients
// are Clients: corev1.PodInterface is a Client[*corev1.PodList].
type Client[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// For makes the function that the InformerFor of a generated factory wants, so
// that the factory's informer for this type is one of package cache:
//
//	factory := externalversions.NewSharedInformerFactory(client, resync)
//	factory.InformerFor(&v1.Lake{}, informers.For(
//		func(c versioned.Interface) examplev1.LakeInterface { return c.ExampleV1().Lakes("") },
//		&v1.Lake{}))
//
// Do this before the factory is asked for the type in any other way: the
// first request decides. From then on factory.Example().V1().Lakes() has this
// informer and its lister.
//
// list is called with the factory's client, of type C, and returns the client of
// the collection in a namespace. All type arguments are inferred. object is of
// the type that the collection holds.
//
// The informer equals the one that the factory would build: objects are indexed
// by namespace, and watch lists are not used if C does not support them. A
// namespace or tweak of the factory is not known here and has to be given again.
// The function can also be called without a factory.
func For[C any, T Client[L], L runtime.Object](list func(C) T, object runtime.Object, options ...ForOption) func(C, time.Duration) cache.SharedIndexInformer {
	return func(client C, resync time.Duration) cache.SharedIndexInformer {
		r := recipe{object: object, indexers: byNamespace()}
		for _, choose := range options {
			choose(&r)
		}
		return r.informer(client, resync, func() Client[runtime.Object] { return untyped[L]{list(client)} })
	}
}

// ForOption chooses something about the informers that [For] makes.
type ForOption func(*recipe)

// Indexed adds indexers to the index by namespace.
func Indexed(indexers cache.Indexers) ForOption {
	return func(r *recipe) { maps.Copy(r.indexers, indexers) }
}

// Tweaked lets tweak change the options of every list and watch.
func Tweaked(tweak func(*metav1.ListOptions)) ForOption {
	return func(r *recipe) { r.tweak = tweak }
}

// Named names the informer in metrics: name is that of its factory (see
// [WithInformerName]), resource what it watches.
func Named(name *cache.InformerName, resource schema.GroupVersionResource) ForOption {
	return func(r *recipe) { r.name, r.resource = name, resource }
}
