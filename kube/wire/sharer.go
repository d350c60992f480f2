package wire

import "github.com/tarnproject/tarn/kube/wire/internal/share"

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
//   - What is no plain data stays as it is: functions, channels, locks, interfaces
//     that do not hold JSON, pointers in unexported fields.
//   - Any number of goroutines may share at a time.
type Sharer struct {
	sharer *share.Sharer
}

// NewSharer returns a sharer into p. It uses only the option SharedMetadata.
func NewSharer(p *Pool, opts Options) *Sharer {
	return &Sharer{share.New(p.internal(), opts.internal())}
}

// Share returns an object of equal content and the same type: a pointer to a
// struct, an unstructured object or a tree of JSON values. It returns the same object
// if there is nothing to share.
func (s *Sharer) Share(object any) any { return s.sharer.Share(object) }

// ShareLike is [Sharer.Share] for an object that resembles one that was shared
// before, such as an older state of it. What both have in common is taken from
// there, which is quicker than a lookup. like may be nil or of another type.
// Its labels, annotations, owner references and finalizers are not read unless
// metadata is shared.
func (s *Sharer) ShareLike(object, like any) any { return s.sharer.ShareLike(object, like) }

// ShareOwn is [Sharer.ShareLike] for an object that was just decoded and that
// nobody else references, not even in part. It may write to the object, so
// nothing of a Go type is copied. The caller must not use the object
// afterwards.
func (s *Sharer) ShareOwn(object, like any) any { return s.sharer.ShareOwn(object, like) }
