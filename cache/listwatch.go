package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
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
//
// An informer that is given the result, as it is, reads it from the wire, at a fraction of
// the cost, if the REST client decodes as those of clientsets do.
func NewListWatchFromClient(c Getter, resource string, namespace string, fieldSelector fields.Selector) *ListWatch {
	reads := &clientReads{client: c, resource: resource, namespace: namespace}
	if fieldSelector != nil {
		reads.fieldSelector = fieldSelector.String()
	}
	return reads.listWatch()
}

// NewFilteredListWatchFromClient is [NewListWatchFromClient] with options of any kind.
// optionsModifier runs last on the options of every request.
func NewFilteredListWatchFromClient(c Getter, resource string, namespace string, optionsModifier func(options *metav1.ListOptions)) *ListWatch {
	return (&clientReads{client: c, resource: resource, namespace: namespace, modify: optionsModifier}).listWatch()
}
