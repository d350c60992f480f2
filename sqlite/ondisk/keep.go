package ondisk

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// Option configures how a copy is kept.
type Option func(*settings)

type settings struct {
	name        string
	secrets     bool
	only        bool
	plain       bool
	lastApplied bool
	// applied holds the annotations with copies of objects, unless lastApplied.
	applied []string
	without []string
	columns []Column
	// transform names what the transform does.
	transform string
}

// WithSecrets writes Secrets too. Without it they are kept in memory only. Consider
// [sqlite.Options].Key, which encrypts them.
func WithSecrets() Option { return func(s *settings) { s.secrets = true } }

// LastApplied is the annotation in which kubectl apply repeats the whole object, with all
// secrets in it.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// WithLastApplied keeps the annotations that repeat objects as they were applied,
// [LastApplied] and similar ones, which are left out otherwise.
func WithLastApplied() Option { return func(s *settings) { s.lastApplied = true } }

// AppliedCopies sets which annotations repeat objects as they were applied, instead of
// [kube.AppliedCopies].
func AppliedCopies(names ...string) Option { return func(s *settings) { s.applied = names } }

// leftOut returns the annotations that are not written.
func (s settings) leftOut() []string {
	if s.lastApplied {
		return nil
	}
	return s.applied
}

// Without leaves fields out, by their path in JSON: "spec.template", as
// [kube.DropFields] does.
func Without(paths ...string) Option {
	return func(s *settings) { s.without = append(s.without, paths...) }
}

// Only keeps the copy on disk and not in memory: each read reads the file, and memory does
// not grow with the number of objects.
func Only() Option { return func(s *settings) { s.only = true } }

// Plain keeps objects without a table for SQL, which halves what is written.
func Plain() Option { return func(s *settings) { s.plain = true } }

// WithColumns adds columns to the resource's table: for a custom resource the printer
// columns of its definition, or any others.
func WithColumns(columns ...Column) Option {
	return func(s *settings) { s.columns = append(s.columns, columns...) }
}

// Name sets the name of the table, for a directory with several copies of a resource with
// different selectors. The default is [TableName].
func Name(name string) Option { return func(s *settings) { s.name = name } }

// In keeps a copy in db, which must stay open while the copy runs. T is that of the copy.
//
// The copy serves the content of an earlier run from the start. Content of another server,
// of other namespaces, selectors or fields is dropped.
//
// Content that is not written, [LastApplied] and similar annotations and the fields of
// [Without], is not in the copy at all. Why not leave it out of the file only: then an
// object would have it only if it has changed since the start of the process, and readers
// could not know.
func In[T any](db *sqlite.DB, opts ...Option) kube.Option {
	s := settingsOf(opts)
	all := []kube.Option{kube.DropFields(s.without...), kube.DropAnnotations(s.leftOut()...)}
	if s.only {
		all = append(all, kube.Store(func(of kube.Origin) (tarn.ReadStore[T], error) { return openStore[T](db, s, of) }))
	} else {
		all = append(all, kube.Sink(func(of kube.Origin) (tarn.Sink[T], error) { return openSink[T](db, s, of) }))
	}
	return kube.Options(all...)
}

// Sink returns the sink of a copy that is made without [kube.Reflect]. The caller leaves
// the fields of [Without] out of the copy, and lists them in of.Drop. [LastApplied] is
// never written, and should be left out of the copy too ([kube.StripAnnotations]). [Only]
// is not for sinks.
func Sink[T any](db *sqlite.DB, of kube.Origin, opts ...Option) (tarn.Sink[T], error) {
	return openSink[T](db, settingsOf(opts), of)
}

func settingsOf(opts []Option) settings {
	s := settings{applied: kube.AppliedCopies()}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// Keeper keeps the informers of a factory, or of a controller's cache, in db, which must
// stay open while they run. Each resource has a table with its name. Copies of metadata
// only have the suffix _metadata, and several copies of a resource have distinct suffixes,
// such as pods_in_kube_system.
//
// Content that is not written, [LastApplied] and the fields of [Without], is not in the
// informers either; see [In]. Informers have their objects in memory too: [Only] is not for
// them.
func Keeper(db *sqlite.DB, opts ...Option) kube.Keeper {
	s := settingsOf(opts)
	keeper := kube.Keeper{Fields: s.without, Annotations: s.leftOut()}
	keeper.Sink = func(of kube.Origin) (tarn.Sink[any], error) {
		own := s
		if own.name == "" {
			own.name = TableName(of.Resource.GroupResource())
			if of.Object == reflect.TypeFor[*metav1.PartialObjectMetadata]() {
				own.name += "_metadata"
			}
			if of.Part != "" {
				own.name = TableName(schema.GroupResource{Resource: own.name + "_" + of.Part})
			}
		}
		return openSink[any](db, own, of)
	}
	return keeper
}

// secret reports whether objects of a resource are only written with WithSecrets.
func secret(r schema.GroupResource) bool { return r == schema.GroupResource{Resource: "secrets"} }

// openSink returns a sink that checks which cluster its content came from.
func openSink[T any](db *sqlite.DB, s settings, of kube.Origin) (tarn.Sink[T], error) {
	resource := of.Resource.GroupResource()
	if s.only {
		return nil, fmt.Errorf("ondisk: %s: this copy has its objects in memory: leave out Only", resource)
	}
	if secret(resource) && !s.secrets {
		return unwritten[T]{}, nil
	}
	c, codec, err := collectionOf[T](s, of)
	if err != nil {
		return nil, err
	}
	sink, err := sqlite.NewSink(db, c, codec)
	if err != nil {
		return nil, err
	}
	return &confirmedSink[T]{sink, newConfirmation(sink, of)}, nil
}

// openStore returns a store on disk that checks which cluster its content came from.
func openStore[T any](db *sqlite.DB, s settings, of kube.Origin) (tarn.ReadStore[T], error) {
	if resource := of.Resource.GroupResource(); secret(resource) && !s.secrets {
		return nil, fmt.Errorf("ondisk: %s are not written without WithSecrets, and Only keeps nothing else: add WithSecrets, or leave out Only", resource)
	}
	c, codec, err := collectionOf[T](s, of)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.NewStore(db, c, codec)
	if err != nil {
		return nil, err
	}
	return &confirmedStore[T]{store, newConfirmation(store, of)}, nil
}

// collectionOf returns the collection and the codec of a copy.
func collectionOf[T any](s settings, of kube.Origin) (c sqlite.Collection, _ sqlite.Codec[T], err error) {
	resource := of.Resource.GroupResource()
	if s.name == "" {
		s.name = TableName(resource)
	}
	codec, err := newCodec[T](of, s)
	if err != nil {
		return c, nil, fmt.Errorf("ondisk: %s: %w", resource, err)
	}
	var written sqlite.Codec[T] = codec
	if s.plain {
		written = withoutTable[T]{codec, codec, codec}
	}
	return sqlite.Collection{Name: s.name, Identity: codec.identity(), Dictionary: dictionary(codec.protobuf)}, written, nil
}

// confirmedSink is a sink that confirms that its content came from the source's cluster.
type confirmedSink[T any] struct {
	*sqlite.Sink[T]
	*confirmation
}

// Open is the sink's, and adds the confirmation.
func (s *confirmedSink[T]) Open(ctx context.Context, flush func() error) (tarn.Kept, error) {
	kept, err := s.Sink.Open(ctx, flush)
	s.confirmation.addTo(&kept)
	return kept, err
}

// confirmedStore is a store that confirms that its content came from the source's cluster.
type confirmedStore[T any] struct {
	*sqlite.Store[T]
	*confirmation
}

// Restore is the store's, and adds the confirmation.
func (s *confirmedStore[T]) Restore(ctx context.Context) (tarn.Kept, error) {
	kept, err := s.Store.Restore(ctx)
	s.confirmation.addTo(&kept)
	return kept, err
}

// unwritten is the sink of a copy that stays in memory.
type unwritten[T any] struct{}

var _ tarn.Restorer[any] = unwritten[any]{}

func (unwritten[T]) Policy() tarn.SinkPolicy[T] { return tarn.SinkPolicy[T]{Name: "disk"} }

func (unwritten[T]) Open(context.Context, func() error) (tarn.Kept, error) {
	return tarn.Kept{}, nil
}

func (unwritten[T]) Load(context.Context) ([]tarn.Change[T], error) { return nil, nil }

func (unwritten[T]) Commit(context.Context, tarn.Batch[T]) error { return nil }

func (unwritten[T]) Close() {}

func (unwritten[T]) Disk() tarn.SinkHealth {
	return tarn.SinkHealth{Note: "Secrets are not written to disk unless asked for"}
}
