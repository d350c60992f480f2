package kube

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tarnproject/tarn"
)

// Option configures a replica of [Reflect], [ReflectResource] or [ReflectMetadata].
type Option func(*settings)

type settings struct {
	namespaces                   []string
	labelSelector, fieldSelector string
	resource                     schema.GroupVersionResource
	kind                         schema.GroupVersionKind
	scheme                       *runtime.Scheme
	mapper                       meta.RESTMapper
	client                       *Client
	drop, dropAnnotations        []string
	maxItem                      int
	sharedMetadata               bool
	sharding                     *Sharding
	// wrong is the first invalid option.
	wrong error

	name      string
	pageSize  int64
	watchList bool
	logger    *slog.Logger
	onError   func(context.Context, error)
	onBad     func(context.Context, tarn.BadObject)
	// These are of the type that the replica's objects have, which is checked when the
	// replica is made: Go cannot infer the type parameter of an option from the function
	// that takes it, so typed options would have to repeat it each time.
	transform        any
	store            any
	sinks, configure []any
}

func settingsOf(opts []Option, more ...Option) *settings {
	s := &settings{scheme: scheme.Scheme, watchList: features.FeatureGates().Enabled(features.WatchListClient)}
	for _, o := range slices.Concat(opts, more) {
		o(s)
	}
	return s
}

// Namespace narrows the copy to one namespace; without it, it has all.
func Namespace(namespace string) Option { return Namespaces(namespace) }

// Namespaces narrows the copy to these namespaces; none means all.
func Namespaces(namespaces ...string) Option {
	return func(s *settings) { s.namespaces = namespaces }
}

// LabelSelector narrows the copy to objects with these labels: "app=web,tier!=db".
func LabelSelector(selector string) Option {
	return func(s *settings) { s.labelSelector = selector }
}

// FieldSelector narrows the copy by the fields that the server can select by:
// "spec.nodeName=node-1".
func FieldSelector(selector string) Option {
	return func(s *settings) { s.fieldSelector = selector }
}

// Resource sets the resource of the objects, which saves a request to the server.
func Resource(resource schema.GroupVersionResource) Option {
	return func(s *settings) { s.resource = resource }
}

// Kind sets the kind of the objects: if a Go type is used for several kinds, or to check
// unstructured objects.
func Kind(kind schema.GroupVersionKind) Option {
	return func(s *settings) { s.kind = kind }
}

// Scheme is where the kind of a Go type is looked up; client-go's if not given.
func Scheme(scheme *runtime.Scheme) Option {
	return func(s *settings) { s.scheme = scheme }
}

// Mapper finds the resource of a kind, instead of a request to the server.
func Mapper(mapper meta.RESTMapper) Option {
	return func(s *settings) { s.mapper = mapper }
}

// WithClient makes the copy use an existing client, and share structure with the
// others that do; the config is then not looked at and may be nil.
func WithClient(client *Client) Option {
	return func(s *settings) { s.client = client }
}

// DropFields leaves fields out before they are decoded, by their path in JSON:
// "metadata.managedFields", "status.conditions".
func DropFields(paths ...string) Option {
	return func(s *settings) { s.drop = append(s.drop, paths...) }
}

// DropManagedFields leaves out the managed fields, often a third of an object, which only
// server-side apply needs.
func DropManagedFields() Option { return DropFields("metadata.managedFields") }

// UnsafeSharedMetadata lets objects have labels, annotations, owner references and
// finalizers in common, which saves some 700 bytes for each. A program that writes to
// one of them by mistake then changes other objects too, and ends if another goroutine
// reads the same map.
func UnsafeSharedMetadata() Option {
	return func(s *settings) { s.sharedMetadata = true }
}

// DropAnnotations leaves annotations out by their names; a * at the beginning or at the
// end stands for any text. Only an object that has one of them is copied, and only down
// to its annotations.
func DropAnnotations(names ...string) Option {
	return func(s *settings) { s.dropAnnotations = append(s.dropAnnotations, names...) }
}

// Shard narrows the copy to shard i of n, counted from 0, by the hash of the objects' uid.
// The copies of n processes together have every object once. Shard(0, 1) has all.
//
// A server with the feature ShardedListAndWatch (KEP-5866) sends only these objects. Any
// other server sends all objects, and the copy drops those of other shards without
// decoding them. Health says which of the two it is.
func Shard(i, n int) Option {
	sharding, err := FixedShard(i, n)
	return func(s *settings) {
		s.sharding, s.wrong = sharding, errors.Join(s.wrong, err)
	}
}

// Sharded narrows the copy to the objects of a sharding, which may change while the copy
// runs.
func Sharded(sharding *Sharding) Option {
	return func(s *settings) { s.sharding = sharding }
}

// Options makes one option of several.
func Options(opts ...Option) Option {
	return func(s *settings) {
		for _, o := range opts {
			o(s)
		}
	}
}

// MaxItem is how many bytes an object may have on the wire; a longer one is
// reported as bad. [DefaultMaxItem] if not given.
func MaxItem(bytes int) Option {
	return func(s *settings) { s.maxItem = bytes }
}

// Name is the name of the copy in errors, logs and Health; "pods (kube-system)" and the
// like if not given.
func Name(name string) Option {
	return func(s *settings) { s.name = name }
}

// PageSize asks for lists in pages of this size.
func PageSize(size int64) Option {
	return func(s *settings) { s.pageSize = size }
}

// WatchList says whether the first state may come as a stream. It may unless this,
// or the environment (KUBE_FEATURE_WatchListClient=false), says no.
func WatchList(on bool) Option {
	return func(s *settings) { s.watchList = on }
}

// Logger logs everything that has no handler.
func Logger(logger *slog.Logger) Option {
	return func(s *settings) { s.logger = logger }
}

// OnError sees every failure to list or watch.
func OnError(handle func(ctx context.Context, err error)) Option {
	return func(s *settings) { s.onError = handle }
}

// OnBad sees every object that could not be taken.
func OnBad(handle func(ctx context.Context, bad tarn.BadObject)) Option {
	return func(s *settings) { s.onBad = handle }
}

// Transform turns an object of the server into the object that the copy keeps. It owns
// the object and may change it in place; with several namespaces it may be called by
// several goroutines at a time. To leave fields out, [DropFields] is cheaper.
func Transform[T any](transform func(T) (T, error)) Option {
	return func(s *settings) { s.transform = transform }
}

// Configure may change anything about the replica, after all other options.
func Configure[T any](change func(*tarn.Options[T])) Option {
	return func(s *settings) { s.configure = append(s.configure, change) }
}
