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
	all = append(all, kube.Keep(func(of kube.Origin, front tarn.ReadStore[T]) (tarn.ReadStore[T], error) {
		return open(db, s, of, front)
	}))
	return kube.Options(all...)
}

// Open gives the store of a copy that is made without [kube.Reflect]: front with
// the disk behind it, or only the disk. Whoever makes the copy leaves out what
// [Without] names, and says so in of.Drop; [LastApplied] is not written in any case,
// and should be left out of the copy too ([kube.WithoutAnnotations]).
func Open[T any](db *sqlite.DB, of kube.Origin, front tarn.ReadStore[T], opts ...Option) (tarn.ReadStore[T], error) {
	return open(db, settingsOf(opts), of, front)
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
	keeper.Store = func(of kube.Origin, front tarn.ReadStore[any]) (tarn.ReadStore[any], error) {
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
		if own.only {
			return nil, fmt.Errorf("ondisk: %s: an informer keeps its objects in memory: leave out Only", own.name)
		}
		return open(db, own, of, front)
	}
	return keeper
}

// secret says whether objects of a resource are not to be written unasked.
func secret(r schema.GroupResource) bool { return r == core("secrets") }

func open[T any](db *sqlite.DB, s settings, of kube.Origin, front tarn.ReadStore[T]) (tarn.ReadStore[T], error) {
	resource := of.Resource.GroupResource()
	if secret(resource) && !s.secrets {
		if s.only {
			return nil, fmt.Errorf("ondisk: %s are not written unless asked for by WithSecrets, and are to be kept only there", resource)
		}
		return unwritten[T]{front}, nil
	}
	if s.name == "" {
		s.name = TableName(resource)
	}
	codec, err := newCodec[T](of, s)
	if err != nil {
		return nil, fmt.Errorf("ondisk: %s: %w", resource, err)
	}
	identity := fmt.Sprintf("%s of %s, %s", resource, of.Server(), of.Selection())
	if of.Transformed {
		identity += ", " + transformName(s.transform)
	}
	var written sqlite.Codec[T] = codec
	if s.plain {
		written = struct{ sqlite.Codec[T] }{codec} // without the methods of a table
	}
	store, err := sqlite.NewStore(db, sqlite.Collection{Name: s.name, Identity: identity, Dictionary: dictionary(codec.protobuf)}, written)
	if err != nil {
		return nil, err
	}
	if s.only {
		return &kept[T]{ReadStore: store, durable: store, label: store, of: of}, nil
	}
	backed := sqlite.Behind(front, store)
	return &kept[T]{ReadStore: backed, durable: backed, label: store, of: of}, nil
}

// kept is a store on disk that knows which cluster its content is of.
//
// Address and authority are compared before anything is served, without asking
// anyone. That another cluster may answer at the same address is noticed when the
// server answers, before anything is read from it.
type kept[T any] struct {
	tarn.ReadStore[T]
	durable tarn.Durable
	label   labelled
	of      kube.Origin

	mu       sync.Mutex
	answered bool
	verdict  error
}

type labelled interface {
	Label() string
	SetLabel(label string, distrust bool) error
}

// Unwrap returns the store on disk, or the one in memory that has it behind; see
// [tarn.StoreWrapper].
func (k *kept[T]) Unwrap() tarn.ReadStore[T] { return k.ReadStore }

// Restore is the store's, and adds which cluster it is.
func (k *kept[T]) Restore(ctx context.Context) (tarn.Kept, error) {
	what, err := k.durable.Restore(ctx)
	what.Confirm = k.confirm
	return what, err
}

// confirm asks the cluster for its uid. It is asked once for all sections, and
// answers all of them the same.
func (k *kept[T]) confirm(ctx context.Context) error {
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

// unwritten is a copy that stays in memory.
type unwritten[T any] struct{ tarn.ReadStore[T] }

func (u unwritten[T]) Unwrap() tarn.ReadStore[T] { return u.ReadStore }

func (u unwritten[T]) Restore(context.Context) (tarn.Kept, error) { return tarn.Kept{}, nil }

func (u unwritten[T]) Disk() tarn.DiskHealth {
	return tarn.DiskHealth{Note: "Secrets are not written to disk unless asked for"}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
