package faults

import (
	"fmt"
	"slices"

	"github.com/tarnproject/tarn"
)

// corrupter corrupts objects of one request.
type corrupter[T any] struct {
	source                 *source[T]
	bad, corrupt, oversize *injector
}

func newCorrupter[T any](s *source[T], r *request) *corrupter[T] {
	return &corrupter[T]{source: s, bad: r.injector(Bad), corrupt: r.injector(Corrupt), oversize: r.injector(Oversize)}
}

// objectFaults are the faults that were drawn for one object.
type objectFaults struct {
	bad, large bool
	// way is the index in Corrupt, or -1.
	way int
}

// draw always draws every kind, so that no result changes what is drawn for the
// next object.
func (s *corrupter[T]) draw() objectFaults {
	v := objectFaults{bad: s.bad.draw(), large: s.oversize.draw(), way: -1}
	if ways := len(s.source.opts.Corrupt); s.corrupt.draw() && ways > 0 {
		v.way = s.corrupt.IntN(ways)
	}
	return v
}

// object returns the object that is sent instead, or a reason why there is none.
func (s *corrupter[T]) object(v objectFaults, object T, key tarn.Key) (T, tarn.BadObject) {
	opts := s.source.opts
	switch {
	case v.bad && s.bad.inject(string(key)):
		var none T
		return none, tarn.BadObject{Key: key, Err: injected(fmt.Errorf("%s: %w", key, tarn.ErrUndecodable))}
	case v.way >= 0 && s.corrupt.inject(fmt.Sprintf("%s, way %d", key, v.way)):
		return opts.Corrupt[v.way](object), tarn.BadObject{}
	case v.large && opts.Oversize != nil && s.oversize.inject(string(key)):
		return opts.Oversize(object), tarn.BadObject{}
	default:
		return object, tarn.BadObject{}
	}
}

// page returns the page that is sent instead. The slices of the given page may
// still belong to someone.
func (s *corrupter[T]) page(page tarn.Page[T]) tarn.Page[T] {
	items := make([]T, 0, len(page.Items))
	bad := slices.Clone(page.Bad)
	for _, item := range page.Items {
		kept, reason := s.object(s.draw(), item, s.source.key(item))
		if reason.Err != nil {
			bad = append(bad, reason)
		} else {
			items = append(items, kept)
		}
	}
	page.Items, page.Bad = items, bad
	return page
}

// key is empty for an object that has none.
func (s *source[T]) key(object T) tarn.Key {
	m, err := s.inner.Describe(object)
	if err != nil {
		return ""
	}
	return m.Key
}
