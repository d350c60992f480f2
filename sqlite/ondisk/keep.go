package ondisk

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// Option shapes how a copy is kept.
type Option func(*settings)

type settings struct {
	name        string
	secrets     bool
	only        bool
	plain       bool
	lastApplied bool
	// applied are the annotations with copies of objects, unless lastApplied.
	applied []string
	without []string
	columns []Column
	// transform names what the transform does.
	transform string
}

// WithSecrets writes Secrets too. Without it they are kept in memory only. Think
// of [sqlite.Options].Key, which encrypts them.
func WithSecrets() Option { return func(s *settings) { s.secrets = true } }

// LastApplied is the annotation in which kubectl apply repeats the whole object, with
// all that was secret in it.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// WithLastApplied keeps the annotations in which objects are repeated as they were
// applied, [LastApplied] and its like, which are else left out.
func WithLastApplied() Option { return func(s *settings) { s.lastApplied = true } }

// AppliedCopies says which annotations repeat objects as they were applied, instead of
// [kube.AppliedCopies].
func AppliedCopies(names ...string) Option { return func(s *settings) { s.applied = names } }

// leftOut are the annotations that are not written.
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

// Only keeps the copy on disk and not in memory: each read looks into the file, and
// memory does not grow with the number of objects.
func Only() Option { return func(s *settings) { s.only = true } }

// Plain keeps objects without a table for SQL, which halves what is written.
func Plain() Option { return func(s *settings) { s.plain = true } }

// WithColumns adds columns to the resource's table: of a custom resource those that
// its definition has as printer columns, or any others.
func WithColumns(columns ...Column) Option {
	return func(s *settings) { s.columns = append(s.columns, columns...) }
}

// Name is the table's, where a directory holds several copies of a resource, with
// other selectors; [TableName] gives it if it is not set.
func Name(name string) Option { return func(s *settings) { s.name = name } }

// In keeps a copy in db, which must stay open for as long as the copy runs. T is
// that of the copy.
//
// What another process, or this one before, kept there is served from the start;
// content of another server, of other namespaces, selectors or fields is dropped.
//
// What is not to be on disk, [LastApplied] with its like and the fields of [Without],
// is not in the copy at all. Why not only leave it out of the file: then an object would have
// it or not depending on whether it has changed since the process was started, and
// nobody who reads it could tell.
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

// Sink returns the sink of a copy that is made without [kube.Reflect]. Whoever makes the
// copy leaves out what [Without] names, and says so in of.Drop; [LastApplied] is not
// written in any case, and should be left out of the copy too ([kube.StripAnnotations]).
// [Only] is not for sinks.
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

// Keeper keeps the informers of a factory, or of a controller's cache, in db, which
// must stay open for as long as they run. Each resource is a table by its name; one
// that is kept as metadata has _metadata behind it, and one of which a cache has
// several copies what tells them apart, such as pods_in_kube_system.
//
// What is not to be on disk, [LastApplied] and the fields of [Without] where objects
// have them, is not in the informers either; see [In]. Informers have their objects
// in memory too: [Only] is not for them.
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

// secret says whether objects of a resource are not to be written unasked.
func secret(r schema.GroupResource) bool { return r == core("secrets") }

// openSink returns a sink that knows which cluster its content is of.
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
	return &confirmedSink[T]{sink, confirmation{label: sink, of: of}}, nil
}

// openStore returns a store on disk that knows which cluster its content is of.
func openStore[T any](db *sqlite.DB, s settings, of kube.Origin) (tarn.ReadStore[T], error) {
	if resource := of.Resource.GroupResource(); secret(resource) && !s.secrets {
		return nil, fmt.Errorf("ondisk: %s are not written unless asked for by WithSecrets, and are to be kept only there", resource)
	}
	c, codec, err := collectionOf[T](s, of)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.NewStore(db, c, codec)
	if err != nil {
		return nil, err
	}
	return &confirmedStore[T]{store, confirmation{label: store, of: of}}, nil
}

// collectionOf says what a copy is in a file, and how its objects are written.
func collectionOf[T any](s settings, of kube.Origin) (c sqlite.Collection, _ sqlite.Codec[T], err error) {
	resource := of.Resource.GroupResource()
	if s.name == "" {
		s.name = TableName(resource)
	}
	codec, err := newCodec[T](of, s)
	if err != nil {
		return c, nil, fmt.Errorf("ondisk: %s: %w", resource, err)
	}
	identity := fmt.Sprintf("%s of %s, %s", resource, of.Server(), of.Selection())
	if of.Transformed {
		identity += ", " + transformName(s.transform)
	}
	var written sqlite.Codec[T] = codec
	if s.plain {
		written = struct{ sqlite.Codec[T] }{codec} // without the methods of a table
	}
	return sqlite.Collection{Name: s.name, Identity: identity, Dictionary: dictionary(codec.protobuf)}, written, nil
}

// confirmedSink is a sink whose content is confirmed to be of the source's cluster.
type confirmedSink[T any] struct {
	*sqlite.Sink[T]
	confirmation
}

// Open is the sink's, and adds which cluster it is.
func (s *confirmedSink[T]) Open(ctx context.Context, flush func() error) (tarn.Kept, error) {
	kept, err := s.Sink.Open(ctx, flush)
	kept.Confirm = s.confirm
	return kept, err
}

// confirmedStore is a store whose content is confirmed to be of the source's cluster.
type confirmedStore[T any] struct {
	*sqlite.Store[T]
	confirmation
}

// Restore is the store's, and adds which cluster it is.
func (s *confirmedStore[T]) Restore(ctx context.Context) (tarn.Kept, error) {
	kept, err := s.Store.Restore(ctx)
	kept.Confirm = s.confirm
	return kept, err
}

// confirmation knows of which cluster content on disk is.
//
// Address and authority are compared before anything is served, without asking
// anyone. That another cluster may answer at the same address is noticed when the
// server answers, before anything is read from it.
type confirmation struct {
	label labelled
	of    kube.Origin

	mu       sync.Mutex
	answered bool
	verdict  error
}

type labelled interface {
	Label() string
	SetLabel(label string, distrust bool) error
}

// confirm asks the cluster for its uid. It is asked once for all sections, and
// answers all of them the same.
func (k *confirmation) confirm(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answered {
		return k.verdict
	}
	uid, err := k.of.ServerUID(ctx)
	if err != nil {
		return err
	}
	k.answered = true
	before := k.label.Label()
	if uid == "" || uid == before {
		return nil
	}
	other := before != ""
	if other {
		k.verdict = fmt.Errorf("%w: it is of the cluster %s, and this is %s", tarn.ErrOtherSource, before, uid)
	}
	if err := k.label.SetLabel(uid, other); err != nil && !other {
		return nil // it will be told to the one who writes objects
	}
	return k.verdict
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

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
