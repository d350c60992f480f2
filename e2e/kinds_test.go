package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
	"github.com/tarnproject/tarn/informers/dynamicinformer"
	"github.com/tarnproject/tarn/kube"
)

// kind is one way to keep a live copy. Every scenario runs all kinds side by
// side, on the same server and through the same bad day.
type kind struct {
	name string
	// ours says that the kind is this library's, held to its promises, and not
	// client-go's, which is there to compare with.
	ours bool
	// streams says that the first state is asked for as a stream (WatchList).
	streams bool
	make    func(*rest.Config) (live, error)
}

// selection says which objects of a resource a copy holds.
type selection struct{ namespace, labels, fields string }

func (s selection) apply(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = s.labels, s.fields
}

// podKinds are the kinds of copies of pods. Each is there twice, beginning with
// a stream (WatchList) and with a list, but for the factory, which leaves the
// choice to its client.
func podKinds(s selection) []kind {
	clientGo := func(lw cache.ListerWatcher) cache.SharedIndexInformer {
		return upstream.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
	}
	ours := func(lw cache.ListerWatcher) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
	}
	streamed := func(c *kubernetes.Clientset) cache.ListerWatcher { return listPods(c, s) }
	listed := func(c *kubernetes.Clientset) cache.ListerWatcher { return withoutStream{listPods(c, s)} }
	return []kind{
		{name: "client-go", streams: true, make: byInformer(podInformer(streamed, clientGo))},
		{name: "client-go by list", make: byInformer(podInformer(listed, clientGo))},
		{name: "cache", ours: true, streams: true, make: byInformer(podInformer(streamed, ours))},
		{name: "cache by list", ours: true, make: byInformer(podInformer(listed, ours))},
		{name: "factory", ours: true, streams: true, make: byInformer(podFactory(s))},
		{name: "kube", ours: true, streams: true, make: byInformer(wiredFactory(s))},
		{name: "kube by list", ours: true, make: byInformer(wiredPods(s))},
		{name: "replica", ours: true, streams: true, make: typedPods(s)},
	}
}

// wiredFactory is a factory whose informers read the wire by themselves.
func wiredFactory(s selection) func(*rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
	return func(config *rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
		factory, err := informers.NewSharedInformerFactoryForConfig(config, 0,
			informers.WithNamespace(s.namespace), informers.WithTweakListOptions(s.apply))
		if err != nil {
			return nil, nil, err
		}
		return factory.Core().V1().Pods().Informer(), runFactory(factory), nil
	}
}

func runFactory(factory informers.SharedInformerFactory) func(context.Context) {
	return func(ctx context.Context) {
		factory.StartWithContext(ctx)
		factory.Shutdown()
	}
}

// wiredPods is the same without a factory, and begins with a list.
func wiredPods(s selection) func(*rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
	return func(config *rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
		client, err := kube.NewClient(config)
		if err != nil {
			return nil, nil, err
		}
		source, err := kube.NewSource[any](client, podCollection(s), kube.SourceOptions{})
		if err != nil {
			return nil, nil, err
		}
		informer := cache.NewSharedIndexInformerFromSource(source, &corev1.Pod{}, cache.SharedIndexInformerOptions{}, false)
		return informer, informer.RunWithContext, nil
	}
}

func podInformer(from func(*kubernetes.Clientset) cache.ListerWatcher, build func(cache.ListerWatcher) cache.SharedIndexInformer) func(*rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
	return func(config *rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		informer := build(from(client))
		return informer, informer.RunWithContext, nil
	}
}

func podFactory(s selection) func(*rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
	return func(config *rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace(s.namespace), informers.WithTweakListOptions(s.apply))
		return factory.Core().V1().Pods().Informer(), runFactory(factory), nil
	}
}

func listPods(client *kubernetes.Clientset, s selection) cache.ListerWatcher {
	pods := client.CoreV1().Pods(s.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			s.apply(&options)
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			s.apply(&options)
			return pods.Watch(ctx, options)
		},
	}
}

// withoutStream makes informers begin with a list.
type withoutStream struct{ cache.ListerWatcher }

func (withoutStream) IsWatchListSemanticsUnSupported() bool { return true }

// With their contexts, or requests that are under way when a copy is stopped
// would go on for as long as the client retries.
func (w withoutStream) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return cache.ToListerWatcherWithContext(w.ListerWatcher).ListWithContext(ctx, options)
}

func (w withoutStream) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return cache.ToListerWatcherWithContext(w.ListerWatcher).WatchWithContext(ctx, options)
}

// customKinds are the kinds of copies of a resource without Go types.
func customKinds(resource schema.GroupVersionResource) []kind {
	build := func(newInformer func(cache.ListerWatcher) cache.SharedIndexInformer) func(*rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
		return func(config *rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return nil, nil, err
			}
			objects := client.Resource(resource)
			informer := newInformer(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return objects.List(ctx, options)
				},
				WatchFuncWithContext: objects.Watch,
			})
			return informer, informer.RunWithContext, nil
		}
	}
	return []kind{
		{name: "client-go", make: byInformer(build(func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return upstream.NewSharedIndexInformer(lw, &unstructured.Unstructured{}, 0, cache.Indexers{})
		}))},
		{name: "cache", ours: true, make: byInformer(build(func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(lw, &unstructured.Unstructured{}, 0, cache.Indexers{})
		}))},
		{name: "kube", ours: true, make: byInformer(func(config *rest.Config) (cache.SharedIndexInformer, func(context.Context), error) {
			factory, err := dynamicinformer.NewFactoryForConfig(config, 0, "", nil)
			if err != nil {
				return nil, nil, err
			}
			return factory.ForResource(resource).Informer(), func(ctx context.Context) {
				factory.Start(ctx.Done())
				factory.Shutdown()
			}, nil
		})},
	}
}
