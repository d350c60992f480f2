package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory/query"
)

// ByIndex returns the objects with this value, in the order of keys. In an index by
// field paths, the value is the text of the first field.
func (s *Store[T]) ByIndex(name, value string) ([]T, error) {
	st := s.pin()
	defer s.unpin(st)
	x, err := st.index(name)
	if err != nil {
		return nil, err
	}
	spans := x.textSpans(value)
	objects := make([]T, 0, x.count(spans, x.entries))
	x.cells(spans, func(cells []*cell[T]) bool {
		objects = st.objects(objects, cells)
		return true
	})
	return objects, nil
}

// IndexKeys returns the keys of the objects with this value, sorted. See ByIndex.
func (s *Store[T]) IndexKeys(name, value string) ([]tarn.Key, error) {
	st := s.pin()
	defer s.unpin(st)
	x, err := st.index(name)
	if err != nil {
		return nil, err
	}
	spans := x.textSpans(value)
	keys := make([]tarn.Key, 0, x.count(spans, x.entries))
	x.cells(spans, func(cells []*cell[T]) bool {
		for _, c := range cells {
			keys = append(keys, c.key)
		}
		return true
	})
	return keys, nil
}

// IndexValues returns the values of all objects, sorted. Those of an index by field
// paths are text, in their own order.
func (s *Store[T]) IndexValues(name string) ([]string, error) {
	st := s.pin()
	defer s.unpin(st)
	x, err := st.index(name)
	if err != nil {
		return nil, err
	}
	values := make([]string, 0, x.postings.n)
	x.postings.from("", func(postings []posting[T]) bool {
		for _, p := range postings {
			values = append(values, x.text(p.term.value))
		}
		return true
	})
	return values, nil
}

// Index returns the objects that share at least one value with object, which need
// not be in the store, each once and in the order of keys. If the function fails
// for object, Index returns its error unchanged.
func (s *Store[T]) Index(name string, object T) ([]T, error) {
	st := s.pin()
	defer s.unpin(st)
	x, err := st.index(name)
	if err != nil {
		return nil, err
	}
	own := index[T]{Index: x.Index}
	values, err := own.valuesOf(object)
	if err != nil {
		return nil, err
	}
	spans := make([]span, len(values))
	for i, value := range values {
		spans[i] = exactly(value)
	}
	var objects []T
	x.cells(spans, func(cells []*cell[T]) bool {
		objects = st.objects(objects, cells)
		return true
	})
	if objects == nil {
		objects = []T{}
	}
	return objects, nil
}

// exactly is the span of one value.
func exactly(value string) span { return span{From: value, To: value + "\x00"} }

// textSpans returns the spans of values with this text.
func (x *index[T]) textSpans(text string) []span {
	if x.function != nil {
		return []span{exactly(text)}
	}
	var spans []span
	for _, v := range fieldpath.ValuesOfText(text) {
		spans = append(spans, query.PrefixSpan(string(v.AppendOrdered(nil))))
	}
	return spans
}

// each yields the postings in spans of values.
func (x *indexState[T]) each(spans []span, yield func(posting[T]) bool) {
	for _, r := range spans {
		more := true
		x.postings.from(r.From, func(postings []posting[T]) bool {
			for _, p := range postings {
				if !r.Has(p.term.value) {
					return false
				}
				if more = yield(p); !more {
					return false
				}
			}
			return true
		})
		if !more {
			return
		}
	}
}

// count counts the cells in spans of values, up to most.
func (x *indexState[T]) count(spans []span, most int) int {
	n := 0
	x.each(spans, func(p posting[T]) bool {
		n += p.n
		return n < most
	})
	return min(n, most)
}

// cells yields the cells in spans of values, each once and, unless yield stops it,
// in the order of keys.
func (x *indexState[T]) cells(spans []span, yield func([]*cell[T]) bool) {
	var first posting[T]
	found := 0
	x.each(spans, func(p posting[T]) bool {
		first = p
		found++
		return found < 2
	})
	switch found {
	case 0:
	case 1:
		first.each(yield)
	default:
		all := make([]*cell[T], 0, x.count(spans, x.entries))
		x.each(spans, func(p posting[T]) bool {
			return p.each(func(cells []*cell[T]) bool {
				all = append(all, cells...)
				return true
			})
		})
		yield(inOrder(all))
	}
}

// inOrder sorts cells by key and removes duplicates.
func inOrder[T any](cells []*cell[T]) []*cell[T] {
	slices.SortFunc(cells, func(a, b *cell[T]) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	return slices.Compact(cells)
}

// A lookup is the range of an index to read.
type lookup struct {
	index string
	spans func(functional bool, fields int) ([]span, error)
}

// Lookup walks the objects that an index has under a value, in the order of keys,
// without a copy. In an index of several fields the values may stand for the first
// fields only. Values are strings, numbers, bools or times; an index by function
// has one, a string.
func (s *Store[T]) Lookup(index string, values ...any) (iter.Seq2[tarn.Key, T], error) {
	return s.looking(exactLookup(index, values))
}

// LookupPrefix walks the objects whose value begins with prefix, by value and then
// by key. In an index of several fields, values are those before the one that
// begins with prefix. An object with several such values comes once for each.
func (s *Store[T]) LookupPrefix(index, prefix string, values ...any) (iter.Seq2[tarn.Key, T], error) {
	return s.looking(prefixLookup(index, prefix, values))
}

// LookupRange walks the objects whose values are at least from and less than to, by
// value and then by key; nil is no bound. In an index of several fields, the rows
// of values are compared field by field. An object with several such values comes
// once for each.
func (s *Store[T]) LookupRange(index string, from, to []any) (iter.Seq2[tarn.Key, T], error) {
	return s.looking(rangeLookup(index, from, to))
}

// LookupWatch is Lookup with a channel that is closed when its result may have
// changed since the call, the index was dropped, or ctx ends.
func (s *Store[T]) LookupWatch(ctx context.Context, index string, values ...any) (iter.Seq2[tarn.Key, T], <-chan struct{}, error) {
	return s.watching(ctx, exactLookup(index, values))
}

// LookupPrefixWatch is LookupPrefix with a channel, see LookupWatch.
func (s *Store[T]) LookupPrefixWatch(ctx context.Context, index, prefix string, values ...any) (iter.Seq2[tarn.Key, T], <-chan struct{}, error) {
	return s.watching(ctx, prefixLookup(index, prefix, values))
}

// LookupRangeWatch is LookupRange with a channel, see LookupWatch.
func (s *Store[T]) LookupRangeWatch(ctx context.Context, index string, from, to []any) (iter.Seq2[tarn.Key, T], <-chan struct{}, error) {
	return s.watching(ctx, rangeLookup(index, from, to))
}

func (s *Store[T]) looking(l lookup) (iter.Seq2[tarn.Key, T], error) {
	if _, _, err := locate(s.current.Load(), l); err != nil {
		return nil, err
	}
	return func(yield func(tarn.Key, T) bool) {
		st := s.pin()
		defer s.unpin(st)
		st.lookup(l, yield)
	}, nil
}

func (s *Store[T]) watching(ctx context.Context, l lookup) (iter.Seq2[tarn.Key, T], <-chan struct{}, error) {
	x, spans, err := locate(s.current.Load(), l)
	if err != nil {
		return nil, nil, err
	}
	changed := x.watchers.within(ctx, spans[0])
	found, err := s.looking(l)
	return found, changed, err
}

// locate finds the index of a lookup and the spans in it.
func locate[T any](st *state[T], l lookup) (*indexState[T], []span, error) {
	x, err := st.index(l.index)
	if err != nil {
		return nil, nil, err
	}
	spans, err := l.spans(x.function != nil, max(1, len(x.paths)))
	if err != nil {
		return nil, nil, fmt.Errorf("index %q: %w", l.index, err)
	}
	return x, spans, nil
}

// lookup yields the result of a lookup. An index that was dropped meanwhile is
// empty.
func (st *state[T]) lookup(l lookup, yield func(tarn.Key, T) bool) {
	x, spans, err := locate(st, l)
	if err != nil {
		return
	}
	x.each(spans, func(p posting[T]) bool {
		return p.each(func(cells []*cell[T]) bool { return st.yieldObjects(cells, yield) })
	})
}
