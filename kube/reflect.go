package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// Reflect returns a live copy of all objects of a Go type, such as *corev1.Pod. It
// runs until ctx ends; then its Done is closed.
//
// The kind comes from the scheme. The resource comes from the server, which is
// queried at the first read: if it does not serve the kind, because its CRD does
// not exist yet, WaitSynced and Health return that error until it does.
func Reflect[T any](ctx context.Context, cfg *rest.Config, opts ...Option) (*tarn.Replica[T], error) {
	s := settingsOf(opts)
	t := reflect.TypeFor[T]()
	if t == unstructuredType || t == metadataType {
		if s.resource.Empty() && s.kind.Empty() {
			return nil, fmt.Errorf("kube: %v can be of any kind: name the resource with ReflectResource or ReflectMetadata, or name the kind", t)
		}
	} else if s.kind.Empty() {
		var err error
		if s.kind, err = kindFor(s.scheme, t); err != nil {
			return nil, err
		}
	}
	return start[T](ctx, cfg, s)
}

// ReflectResource returns a live copy of a resource, custom or not, as unstructured
// objects.
func ReflectResource(ctx context.Context, cfg *rest.Config, resource schema.GroupVersionResource, opts ...Option) (*tarn.Replica[*unstructured.Unstructured], error) {
	return start[*unstructured.Unstructured](ctx, cfg, settingsOf(opts, Resource(resource)))
}

// ReflectMetadata returns a live copy of the metadata of a resource's objects. The server
// sends only the metadata.
func ReflectMetadata(ctx context.Context, cfg *rest.Config, resource schema.GroupVersionResource, opts ...Option) (*tarn.Replica[*metav1.PartialObjectMetadata], error) {
	return start[*metav1.PartialObjectMetadata](ctx, cfg, settingsOf(opts, Resource(resource)))
}

// start makes the replica and runs it.
func start[T any](ctx context.Context, cfg *rest.Config, s *settings) (*tarn.Replica[T], error) {
	if s.wrong != nil {
		return nil, s.wrong
	}
	client := s.client
	if client == nil {
		var err error
		if client, err = NewClient(cfg); err != nil {
			return nil, err
		}
	}
	collections, err := s.collections(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	options, err := replicaOptions[T](s, collections, client.pool)
	if err != nil {
		return nil, err
	}
	decoding := SourceOptions{Drop: s.drop, MaxItem: s.maxItem, Unshared: options.Transform != nil, UnsafeSharedMetadata: s.sharedMetadata, Shard: s.sharding}
	locator := &locator{client: client, mapper: s.mapper, kind: s.kind, sem: make(chan struct{}, 1)}
	var sections []tarn.Section[T]
	for _, c := range collections {
		decoding.shard = newShardReader(s.sharding) // each section has its own
		source := &lazySource[T]{locator: locator, collection: c, opts: decoding}
		if !c.Resource.Empty() {
			// No lookup is needed, so errors can be returned at once.
			if err := source.find(ctx); err != nil {
				return nil, err
			}
		}
		sections = append(sections, tarn.Section[T]{Name: c.Namespace, Source: source, Prefix: KeyPrefix(c.Namespace)})
	}
	store, err := openStore(s, client, collections, &options)
	if err != nil {
		return nil, err
	}
	options.Transform = strippingAnnotations(s.dropAnnotations, options.Transform)
	replica, err := newReplica(sections, store, options)
	if err != nil {
		return nil, err
	}
	for _, s := range sections {
		s.Source.(*lazySource[T]).opts.shard.announce()
	}
	go func() { _ = replica.Run(ctx) }()
	return replica, nil
}

func newReplica[T any](sections []tarn.Section[T], store tarn.ReadStore[T], options tarn.Options[T]) (*tarn.Replica[T], error) {
	if len(sections) == 1 {
		return tarn.NewReplica(sections[0].Source, store, options)
	}
	return tarn.NewReplicaOf(sections, store, options)
}

// KeyPrefix is the common prefix of the keys of a namespace's objects; empty for
// all namespaces.
func KeyPrefix(namespace string) tarn.Key {
	if namespace == metav1.NamespaceAll {
		return ""
	}
	return tarn.Key(namespace + "/")
}

// collections returns one collection for each namespace of the settings. Their
// resource is empty if it must be looked up.
func (s *settings) collections(object reflect.Type) ([]Collection, error) {
	all := Collection{
		Resource: s.resource, Kind: s.kind, Object: object,
		LabelSelector: s.labelSelector, FieldSelector: s.fieldSelector,
	}
	namespaces := slices.Compact(slices.Sorted(slices.Values(s.namespaces)))
	if len(namespaces) == 0 {
		return []Collection{all}, nil
	}
	if len(namespaces) > 1 && namespaces[0] == metav1.NamespaceAll {
		return nil, fmt.Errorf("kube: %q names all namespaces beside single ones; name either", s.namespaces)
	}
	var each []Collection
	for _, namespace := range namespaces {
		all.Namespace = namespace
		each = append(each, all)
	}
	return each, nil
}

// replicaOptions are the settings of the engine.
//
// A transform may write to its input, so the input shares nothing; its result is
// made to share instead.
func replicaOptions[T any](s *settings, collections []Collection, pool *wire.Pool) (tarn.Options[T], error) {
	o := tarn.Options[T]{Name: s.name, WatchList: s.watchList, Logger: s.logger, OnError: s.onError, OnBad: s.onBad}
	if o.Name == "" {
		named := collections[0]
		if len(collections) > 1 {
			named.Namespace = "" // each section has its own namespace
		}
		if named.Resource.Empty() {
			named.Resource, _ = meta.UnsafeGuessKindToResource(s.kind)
		}
		o.Name = named.String()
	}
	if s.pageSize > 0 {
		o.PageSize = func() int64 { return s.pageSize }
	}
	if s.transform != nil {
		transform, ok := s.transform.(func(T) (T, error))
		if !ok {
			return o, fmt.Errorf("kube: %s: the transform is a %T, but the objects are %v", o.Name, s.transform, reflect.TypeFor[T]())
		}
		o.Transform = transform
	}
	for _, change := range s.configure {
		f, ok := change.(func(*tarn.Options[T]))
		if !ok {
			return o, fmt.Errorf("kube: %s: Configure has a %T, but the objects are %v", o.Name, change, reflect.TypeFor[T]())
		}
		f(&o)
	}
	if transform := o.Transform; transform != nil {
		sharer := wire.NewSharer(pool, wire.Options{SharedMetadata: s.sharedMetadata})
		o.Transform = func(object T) (T, error) {
			kept, err := transform(object)
			if err != nil {
				return kept, err
			}
			if shared, ok := sharer.Share(kept).(T); ok {
				return shared, nil
			}
			return kept, nil
		}
	}
	return o, nil
}

// kindFor looks a Go type up in a scheme.
func kindFor(scheme *runtime.Scheme, t reflect.Type) (schema.GroupVersionKind, error) {
	var none schema.GroupVersionKind
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return none, fmt.Errorf("kube: %v is not an object type: use a pointer to a struct, such as *corev1.Pod", t)
	}
	object, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
	if !ok {
		return none, fmt.Errorf("kube: %v is not a runtime.Object; generate its methods with deepcopy-gen", t)
	}
	if scheme == nil {
		return none, errors.New("kube: the scheme is nil")
	}
	kinds, _, err := scheme.ObjectKinds(object)
	switch {
	case err != nil:
		return none, fmt.Errorf("kube: the scheme does not know %v: add its package with AddToScheme and pass the scheme with the option Scheme: %w", t, err)
	case len(kinds) > 1:
		return none, fmt.Errorf("kube: %v stands for several kinds, %v: choose one with the option Kind", t, kinds)
	}
	return kinds[0], nil
}
