package cache

import (
	"context"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
)

// clientReads are the requests of a [ListWatch] that [NewListWatchFromClient] or
// [NewFilteredListWatchFromClient] made.
//
// An informer that is given such a ListWatch makes the same requests and decodes the
// answers by package kube. Otherwise the REST client would decode every object first, and
// sharing equal parts would come on top, which takes several times as long
// (bench, contender "tarn cache REST client").
//
// Why a ListWatch is asked through its functions and not looked up in a table: programs
// copy ListWatches and replace single functions, and a function that was replaced must be
// called.
type clientReads struct {
	client              Getter
	resource, namespace string
	fieldSelector       string
	modify              func(*metav1.ListOptions) // nil for none
}

// readsKey is the key of a context in which the functions of a ListWatch say what they would
// read, instead of reading it.
type readsKey struct{}

// listWatch returns the requests as a ListWatch. It is not inlined, because the compiler
// would make its functions anew, and [readsOf] would not recognise them.
//
//go:noinline
func (r *clientReads) listWatch() *ListWatch {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if into, ok := ctx.Value(readsKey{}).(**clientReads); ok {
			*into = r
			return nil, nil
		}
		return r.request(options).Do(ctx).Get()
	}
	follow := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		if into, ok := ctx.Value(readsKey{}).(**clientReads); ok {
			*into = r
			return nil, nil
		}
		options.Watch = true
		return r.request(options).Watch(ctx)
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

func (r *clientReads) request(options metav1.ListOptions) *rest.Request {
	if r.modify == nil {
		options.FieldSelector = r.fieldSelector
	} else {
		r.modify(&options)
	}
	return r.client.Get().Namespace(r.namespace).Resource(r.resource).VersionedParams(&options, metav1.ParameterCodec)
}

// ownFunctions are the functions of every ListWatch that listWatch returns.
var ownFunctions = (&clientReads{}).listWatch()

// readsOf returns what a lister-watcher reads, or nil if it is not known.
func readsOf(lw ListerWatcher) *clientReads {
	if of, ok := lw.(*clientListWatch); ok && of != nil {
		lw = of.ListWatch
	}
	own, ok := lw.(*ListWatch)
	if !ok || own == nil || !sameFunction(own.ListWithContextFunc, ownFunctions.ListWithContextFunc) ||
		!sameFunction(own.WatchFuncWithContext, ownFunctions.WatchFuncWithContext) {
		return nil
	}
	var listed, watched *clientReads
	_, _ = own.ListWithContextFunc(context.WithValue(context.Background(), readsKey{}, &listed), metav1.ListOptions{})
	_, _ = own.WatchFuncWithContext(context.WithValue(context.Background(), readsKey{}, &watched), metav1.ListOptions{})
	if listed != watched {
		return nil // a program put it together from two
	}
	return listed
}

// sameFunction says whether two functions have the same code.
func sameFunction(f, g any) bool { return reflect.ValueOf(f).Pointer() == reflect.ValueOf(g).Pointer() }

// clientSource makes the requests of a [ListWatch] of a REST client and decodes the answers by
// itself. Once a program has replaced a function of the ListWatch, it calls that.
type clientSource struct {
	*kube.Source[any]
	lw    ListerWatcher
	reads *clientReads
	plain *source
}

// clientSourceOf returns the source of a lister-watcher that is known to read with a REST
// client. It returns nil unless it is certain that its objects equal those that the
// lister-watcher returns: then that is to be called.
func clientSourceOf(lw ListerWatcher, example runtime.Object, description string) *clientSource {
	reads := readsOf(lw)
	if reads == nil {
		return nil
	}
	client, ok := reads.client.(*rest.RESTClient)
	if !ok || client == nil {
		return nil
	}
	reader, err := kube.ClientOf(client, kube.WithPool(wire.Shared()), kube.DirectRequests())
	if err != nil {
		return nil
	}
	kind := kindAt(client, example)
	if kind.Empty() {
		return nil
	}
	source, err := kube.NewSource[any](reader, kube.Collection{
		Resource: kind.GroupVersion().WithResource(reads.resource), Kind: kind, Object: reflect.TypeOf(example),
		Namespace: reads.namespace, FieldSelector: reads.fieldSelector, Tweak: reads.modify,
	}, kube.SourceOptions{})
	if err != nil {
		return nil
	}
	return &clientSource{source, lw, reads, newSource(lw, example, description)}
}

func (s *clientSource) replaced() bool { return readsOf(s.lw) != s.reads }

func (s *clientSource) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[any], error) {
	if s.replaced() {
		return s.plain.List(ctx, q)
	}
	return s.Source.List(ctx, q)
}

func (s *clientSource) StreamList(ctx context.Context, q tarn.ListQuery, take func([]any)) (tarn.Page[any], error) {
	if s.replaced() {
		return s.plain.List(ctx, q)
	}
	return s.Source.StreamList(ctx, q, take)
}

func (s *clientSource) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[any], error) {
	if s.replaced() {
		return s.plain.Watch(ctx, q)
	}
	return s.Source.Watch(ctx, q)
}

// kindAt returns the kind that a REST client decodes into the type of an example, without
// converting it or setting defaults. The kind is empty if the scheme has no such kind or
// several, or cannot be read.
func kindAt(client *rest.RESTClient, example runtime.Object) (kind schema.GroupVersionKind) {
	scheme := schemeOf(client)
	if _, untyped := example.(runtime.Unstructured); untyped || scheme == nil || isNil(example) {
		return kind
	}
	kinds, _, err := scheme.ObjectKinds(example)
	if err != nil {
		return kind
	}
	for _, k := range kinds {
		switch {
		case k.GroupVersion() != client.APIVersion():
		case !kind.Empty():
			return schema.GroupVersionKind{}
		default:
			kind = k
		}
	}
	if !scheme.Recognizes(kind.GroupVersion().WithKind(kind.Kind + "List")) {
		return schema.GroupVersionKind{}
	}
	return kind
}

// schemeOf returns the scheme by which a REST client decodes, if it neither converts nor sets
// defaults, as those of clientsets do not, and asks for formats that package kube reads;
// otherwise nil.
//
// A REST client has no method that tells this, so its fields are read, without unsafe. If one
// is missing or has another type, as in another version of client-go, informers go through
// the REST client as client-go's do.
func schemeOf(client *rest.RESTClient) *runtime.Scheme {
	content := fieldOf(reflect.ValueOf(client), "content", "base")
	for _, accepted := range []string{"ContentType", "AcceptContentTypes"} {
		if at := fieldOf(content, accepted); at.Kind() != reflect.String || !readable(at.String()) {
			return nil
		}
	}
	codec := fieldOf(content, "Negotiator", "serializer")
	if codec.Kind() != reflect.Interface || codec.IsNil() || codec.Elem().Type() != reflect.TypeFor[serializer.WithoutConversionCodecFactory]() {
		return nil
	}
	scheme := codec.Elem().FieldByName("scheme")
	if !scheme.IsValid() || scheme.Type() != reflect.TypeFor[*runtime.Scheme]() {
		return nil
	}
	return (*runtime.Scheme)(scheme.UnsafePointer())
}

// fieldOf follows fields of structs, and what leads to structs. It returns the zero Value if
// there is no such field.
func fieldOf(at reflect.Value, names ...string) reflect.Value {
	for _, name := range names {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Interface {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		at = at.FieldByName(name)
	}
	return at
}

// readable says whether package kube reads what a client with these media types is sent.
func readable(accepted string) bool {
	return accepted == "" || strings.Contains(accepted, runtime.ContentTypeJSON) || strings.Contains(accepted, runtime.ContentTypeProtobuf)
}
