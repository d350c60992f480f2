package ctrlcache

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// endpoint is where one collection is listed and watched, by client-go's clients.
type endpoint interface {
	list(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// newEndpoint returns the endpoint of a kind, in a namespace or in all.
func newEndpoint(cfg *rest.Config, opts *cache.Options, k kind, resource schema.GroupVersionResource, namespace string) (endpoint, error) {
	// A serializer in the config is for typed objects of somebody's own scheme.
	bare := rest.CopyConfig(cfg)
	bare.NegotiatedSerializer = nil
	switch k.form {
	case unstructuredForm:
		client, err := dynamic.NewForConfigAndClient(bare, opts.HTTPClient)
		if err != nil {
			return nil, err
		}
		return dynamicEndpoint{client.Resource(resource).Namespace(namespace)}, nil
	case metadataOnly:
		client, err := metadata.NewForConfigAndClient(bare, opts.HTTPClient)
		if err != nil {
			return nil, err
		}
		return metadataEndpoint{client.Resource(resource).Namespace(namespace), k.gvk}, nil
	default:
		client, err := apiutil.RESTClientForGVK(k.gvk, false, false, cfg, serializer.NewCodecFactory(opts.Scheme), opts.HTTPClient)
		if err != nil {
			return nil, err
		}
		return typedEndpoint{client, resource.Resource, namespace, func() (runtime.Object, error) { return opts.Scheme.New(k.listKind()) }}, nil
	}
}

type dynamicEndpoint struct{ dynamic.ResourceInterface }

func (e dynamicEndpoint) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return e.List(ctx, o)
}

func (e dynamicEndpoint) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return e.Watch(ctx, o)
}

// metadataEndpoint names the kind in every object: the server names it as
// PartialObjectMetadata, and handlers want to know of what.
type metadataEndpoint struct {
	metadata.ResourceInterface
	gvk schema.GroupVersionKind
}

func (e metadataEndpoint) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := e.List(ctx, o)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(e.gvk)
	}
	return list, nil
}

func (e metadataEndpoint) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := e.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return stamp(events, e.gvk), nil
}

// stamped is a watch of metadata whose objects name their kind.
//
// Why not watch.Filter: its goroutine stays for ever if the watch is stopped while
// an event waits to be taken.
type stamped struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func stamp(from watch.Interface, gvk schema.GroupVersionKind) *stamped {
	s := &stamped{Interface: from, events: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(s.events)
		for event := range from.ResultChan() {
			if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
				object.SetGroupVersionKind(gvk)
			}
			select {
			case s.events <- event:
			case <-s.stopped:
				return
			}
		}
	}()
	return s
}

func (s *stamped) ResultChan() <-chan watch.Event { return s.events }

func (s *stamped) Stop() {
	s.once.Do(func() { close(s.stopped) })
	s.Interface.Stop()
}

type typedEndpoint struct {
	client              rest.Interface
	resource, namespace string
	newList             func() (runtime.Object, error)
}

func (e typedEndpoint) request(o metav1.ListOptions) *rest.Request {
	// The options are encoded by client-go's scheme: a user's own need not know
	// them.
	return e.client.Get().NamespaceIfScoped(e.namespace, e.namespace != "").Resource(e.resource).
		SpecificallyVersionedParams(&o, clientscheme.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

func (e typedEndpoint) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := e.newList()
	if err != nil {
		return nil, err
	}
	return list, e.request(o).Do(ctx).Into(list)
}

func (e typedEndpoint) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return e.request(o).Watch(ctx)
}

// selected is an endpoint under the settings of a namespace, as informers want
// it.
func selected(e endpoint, config cache.Config) toolscache.ListerWatcher {
	choose := func(o *metav1.ListOptions) {
		if config.LabelSelector != nil {
			o.LabelSelector = config.LabelSelector.String()
		}
		if config.FieldSelector != nil {
			o.FieldSelector = config.FieldSelector.String()
		}
	}
	bookmarks := ptr.Deref(config.EnableWatchBookmarks, true)
	requests := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			choose(&o)
			return e.list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			choose(&o)
			o.AllowWatchBookmarks = bookmarks
			return e.watch(ctx, o)
		},
	}
	if !bookmarks {
		return unmarked{requests}
	}
	return requests
}

// unmarked has no bookmarks, and so cannot get the end of a streamed list.
type unmarked struct{ *toolscache.ListWatch }

func (unmarked) IsWatchListSemanticsUnSupported() bool { return true }
