package faults

import (
	"fmt"
	"slices"

	"github.com/tarnproject/tarn"
)

// spoiler makes bad objects of those of one request.
type spoiler[T any] struct {
	source               *source[T]
	bad, spoil, oversize *dice
}

func newSpoiler[T any](s *source[T], r *request) *spoiler[T] {
	return &spoiler[T]{source: s, bad: r.dice(Bad), spoil: r.dice(Spoil), oversize: r.dice(Oversize)}
}

// verdict is what the dice say of one object.
type verdict struct {
	bad, large bool
	// way is the index in Spoil, or -1.
	way int
}

// judge draws all decisions, whatever the others are, so that none of them changes
// what is drawn for the next object.
func (s *spoiler[T]) judge() verdict {
	v := verdict{bad: s.bad.comesUp(), large: s.oversize.comesUp(), way: -1}
	if ways := len(s.source.opts.Spoil); s.spoil.comesUp() && ways > 0 {
		v.way = s.spoil.IntN(ways)
	}
	return v
}

// object returns the object that is sent instead, or a reason why there is none.
func (s *spoiler[T]) object(v verdict, object T, key tarn.Key) (T, tarn.BadObject) {
	opts := s.source.opts
	switch {
	case v.bad && s.bad.happens(string(key)):
		var none T
		return none, tarn.BadObject{Key: key, Err: injected(fmt.Errorf("%s: %w", key, tarn.ErrUndecodable))}
	case v.way >= 0 && s.spoil.happens(fmt.Sprintf("%s, way %d", key, v.way)):
		return opts.Spoil[v.way](object), tarn.BadObject{}
	case v.large && opts.Oversize != nil && s.oversize.happens(string(key)):
		return opts.Oversize(object), tarn.BadObject{}
	default:
		return object, tarn.BadObject{}
	}
}

// page returns the page that is sent instead. The slices of the given page may
// still belong to someone.
func (s *spoiler[T]) page(page tarn.Page[T]) tarn.Page[T] {
	items := make([]T, 0, len(page.Items))
	bad := slices.Clone(page.Bad)
	for _, item := range page.Items {
		kept, reason := s.object(s.judge(), item, s.source.key(item))
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
