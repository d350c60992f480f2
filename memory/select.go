package memory

import (
	"iter"
	"runtime"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory/query"
)

// Select returns the result of a query in the newest state.
func (s *Store[T]) Select(q query.Query) (query.Page[T], error) {
	st := s.pin()
	defer s.unpin(st)
	return query.Select(st, q)
}

// Count counts the result of a query, without its limit and token.
func (s *Store[T]) Count(q query.Query) (int, error) {
	st := s.pin()
	defer s.unpin(st)
	return query.Count(st, q)
}

// Explain shows how a query would be answered.
func (s *Store[T]) Explain(q query.Query) (query.Plan, error) {
	st := s.pin()
	defer s.unpin(st)
	return query.Explain(st, q)
}

// Select returns the result of a query.
func (n *Snapshot[T]) Select(q query.Query) (query.Page[T], error) {
	defer runtime.KeepAlive(n)
	return query.Select(n.state, q)
}

// Count counts the result of a query, without its limit and token.
func (n *Snapshot[T]) Count(q query.Query) (int, error) {
	defer runtime.KeepAlive(n)
	return query.Count(n.state, q)
}

// Explain shows how a query would be answered.
func (n *Snapshot[T]) Explain(q query.Query) (query.Plan, error) {
	defer runtime.KeepAlive(n)
	return query.Explain(n.state, q)
}

// The following methods make a pinned state a [query.State].

func (st *state[T]) Version() tarn.Version { return st.version }
func (st *state[T]) Len() int              { return st.cells.n }

// CountKeys counts the objects in a span of keys.
func (st *state[T]) CountKeys(r span) int {
	n := 0
	st.cells.from(r.From, func(cells []*cell[T]) bool {
		end, more := len(cells), true
		if r.To != "" && string(cells[end-1].key) >= r.To {
			end, _ = find(cells, r.To)
			more = false
		}
		n += end
		return more
	})
	return n
}

// Scan yields the objects of a span of keys. Unlike walk it fills no pages: most
// queries that read all objects are not repeated.
func (st *state[T]) Scan(keys span, yield func(tarn.Key, T) bool) {
	st.leaves(keys.From, func(leaf *node[*cell[T]], first int) bool {
		cells := leaf.items[first:]
		return st.scan(cells, keys, yield) && (keys.To == "" || string(cells[len(cells)-1].key) < keys.To)
	})
}

// scan yields the objects of those cells whose keys lie in a span.
func (st *state[T]) scan(cells []*cell[T], keys span, yield func(tarn.Key, T) bool) bool {
	for _, c := range cells {
		if !keys.Has(string(c.key)) {
			continue
		}
		if v := c.at(st.seq); v != nil && !yield(c.key, v.object) {
			return false
		}
	}
	return true
}

func (st *state[T]) Indexes() iter.Seq[query.Index[T]] {
	return func(yield func(query.Index[T]) bool) {
		for _, x := range st.indexes {
			if !yield(x) {
				return
			}
		}
	}
}

func (st *state[T]) Index(name string) (query.Index[T], error) { return st.index(name) }

// ScanIndex yields the objects of an index of this state in spans of values.
func (st *state[T]) ScanIndex(x query.Index[T], values []span, keys span, yield func(tarn.Key, T) bool) {
	x.(*indexState[T]).cells(values, func(cells []*cell[T]) bool { return st.scan(cells, keys, yield) })
}

// The following methods make an index a [query.Index].

func (x *indexState[T]) Name() string             { return x.name }
func (x *indexState[T]) Paths() []*fieldpath.Path { return x.paths }

func (x *indexState[T]) Spans(text string) []span { return x.textSpans(text) }

func (x *indexState[T]) Count(values []span, most int) int { return x.count(values, most) }

// Finds calls the index function on, or reads the fields of, objects that need not
// be in the index.
func (x *indexState[T]) Finds(text string) func(object T) bool {
	reader, spans := index[T]{Index: x.Index}, x.textSpans(text)
	return func(object T) bool {
		values, _ := reader.valuesOf(object) // an object that fails is not in the index
		return slices.ContainsFunc(values, func(value string) bool {
			return slices.ContainsFunc(spans, func(r span) bool { return r.Has(value) })
		})
	}
}
