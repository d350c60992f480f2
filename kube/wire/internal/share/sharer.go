package share

import (
	"reflect"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

// Sharer makes objects that are decoded already share their equal parts: slices,
// maps, what pointers point to, strings.
//
//   - The object given is never written to: it may still belong to someone. What
//     Share returns has the same content, to the bit, and is built beside it out
//     of the pool's parts, the object's own parts and copies of what lies between.
//     Only [Sharer.ShareOwn] builds it where the object is.
//   - The pool keeps nothing of the object's memory, whose owner may change it.
//   - The object itself is never shared: its own fields may be set. Its parts are
//     read-only from then on, as everything in a cache is.
//   - Parts of slices have no room behind them, so that an append copies.
//   - What is no plain data stays as it is: functions, channels, locks,
//     interfaces that do not hold JSON, pointers in unexported fields.
//   - Any number of goroutines may share at a time.
//
// A part is looked up by a hash of its whole content and compared before it is
// used, because both are complete. That needs no trust in the hash, and finds parts
// that someone changed although they are shared.
//
// Why from the top down, and not hash-consing from the leaves up, where equal
// parts are found by the addresses of their children: most of a large object is
// in a few large parts that are found at once, while the other way looks up each
// of its 230 pieces. All hashes below a part are computed along with its own, so
// that going down costs no second reading.
type Sharer struct {
	pool *pool.Pool
	opts pool.Options

	mu   sync.Mutex
	idle idleWorkers
}

// New returns a sharer into a pool. It uses only the option SharedMetadata.
func New(parts *pool.Pool, opts pool.Options) *Sharer {
	return &Sharer{pool: parts, opts: opts}
}

// Share returns an object of equal content and the same type: a pointer to a
// struct, an unstructured object or a tree of JSON values. It returns the same object
// if there is nothing to share.
func (s *Sharer) Share(object any) any { return s.ShareLike(object, nil) }

// ShareLike is [Sharer.Share] for an object that resembles one that was shared
// before, such as an older state of it. What both have in common is taken from
// there, which is quicker than a lookup. like may be nil or of another type.
// Its labels, annotations, owner references and finalizers are not read if
// these are each object's own.
func (s *Sharer) ShareLike(object, like any) any { return s.share(object, like, false) }

// ShareOwn is [Sharer.ShareLike] for an object that was just decoded and that
// nobody else references, not even in part. It may write to the object, so
// nothing of a Go type is copied. The caller must not use the object
// afterwards.
func (s *Sharer) ShareOwn(object, like any) any { return s.share(object, like, true) }

func (s *Sharer) share(object, like any, inPlace bool) any {
	if s.pool == nil || object == nil {
		return object
	}
	w := s.worker()
	defer s.release(w)
	w.begin()
	w.inPlace = inPlace
	switch o := object.(type) {
	case *unstructured.Unstructured:
		if o == nil {
			return object
		}
		var members map[string]any
		if l, ok := like.(*unstructured.Unstructured); ok && l != nil {
			members = l.Object
		}
		if content, changed := w.own(o.Object, members, 0, 0); changed {
			return &unstructured.Unstructured{Object: content}
		}
		return object
	case map[string]any:
		members, _ := like.(map[string]any)
		if content, changed := w.own(o, members, 0, 0); changed {
			return content
		}
		return object
	}
	return w.object(object, like)
}

// object shares the parts of a Go type's value.
func (w *worker) object(object, like any) any {
	t := reflect.TypeOf(object)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return object
	}
	p, src := w.plan(t.Elem()), shape.Boxed(object)
	if src == nil || p.opaque {
		return object
	}
	var model unsafe.Pointer
	if reflect.TypeOf(like) == t {
		model = shape.Boxed(like)
		w.fetch(p, model, 1)
	}
	b := w.block(src, p, 1)
	w.build(&b, 0, p, model, unhashed, 0)
	w.gather(&b, 0)
	w.scalars.gather()
	if b.dst == nil {
		return object
	}
	return reflect.NewAt(t.Elem(), b.dst).Interface()
}
