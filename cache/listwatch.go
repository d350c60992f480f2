package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"
)

// plainLister and plainWatcher lend the context methods to a source that has only
// the plain ones. They cannot cancel a call: a context that ends is seen when it
// returns.
type (
	plainLister  struct{ Lister }
	plainWatcher struct{ Watcher }
)

func (l plainLister) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.List(options)
}

func (w plainWatcher) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.Watch(options)
}

// ToListerWithContext gives l itself if it takes a context, else a wrapper that
// does not pass it on.
func ToListerWithContext(l Lister) ListerWithContext {
	if own, ok := l.(ListerWithContext); ok {
		return own
	}
	return plainLister{l}
}

// ToWatcherWithContext is [ToListerWithContext] for watchers.
func ToWatcherWithContext(w Watcher) WatcherWithContext {
	if own, ok := w.(WatcherWithContext); ok {
		return own
	}
	return plainWatcher{w}
}

// ToListerWatcherWithContext is [ToListerWithContext] for both. Of a source with
// a context for only one of its halves, that one is used.
func ToListerWatcherWithContext(lw ListerWatcher) ListerWatcherWithContext {
	if own, ok := lw.(ListerWatcherWithContext); ok {
		return own
	}
	return struct {
		ListerWithContext
		WatcherWithContext
	}{ToListerWithContext(lw), ToWatcherWithContext(lw)}
}

// ToListWatcherWithWatchListSemantics lets lw say what the client behind it says
// about streaming lists, so that the reflector does not try them on a fake.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	return &clientListWatch{ListWatch: lw, noWatchList: watchlist.DoesClientNotSupportWatchListSemantics(client)}
}

type clientListWatch struct {
	*ListWatch
	noWatchList bool
}

// IsWatchListSemanticsUnSupported is what reflectors, client-go's as well, ask.
func (lw *clientListWatch) IsWatchListSemanticsUnSupported() bool { return lw.noWatchList }

// NewListWatchFromClient lists and watches a resource through a REST client,
// restricted to what the field selector matches.
func NewListWatchFromClient(c Getter, resource string, namespace string, fieldSelector fields.Selector) *ListWatch {
	return NewFilteredListWatchFromClient(c, resource, namespace, func(options *metav1.ListOptions) {
		options.FieldSelector = fieldSelector.String()
	})
}

// NewFilteredListWatchFromClient lists and watches a resource through a REST
// client. optionsModifier runs last on the options of every request.
func NewFilteredListWatchFromClient(c Getter, resource string, namespace string, optionsModifier func(options *metav1.ListOptions)) *ListWatch {
	request := func(options metav1.ListOptions) *rest.Request {
		optionsModifier(&options)
		return c.Get().Namespace(namespace).Resource(resource).VersionedParams(&options, metav1.ParameterCodec)
	}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return request(options).Do(ctx).Get()
	}
	follow := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.Watch = true
		return request(options).Watch(ctx)
	}
	return &ListWatch{
		ListWithContextFunc:  list,
		WatchFuncWithContext: follow,
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			return list(context.Background(), options)
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			return follow(context.Background(), options)
		},
	}
}
