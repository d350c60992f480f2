package memory

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// Page is a part of what a query found.
type Page[T any] struct {
	Keys    []tarn.Key
	Objects []T
	// Version is the state that was looked at.
	Version tarn.Version
	// Continue is for [Query.After], empty if there is nothing more.
	Continue string
}

// All walks the page.
func (p Page[T]) All() iter.Seq2[tarn.Key, T] {
	return func(yield func(tarn.Key, T) bool) {
		for i, key := range p.Keys {
			if !yield(key, p.Objects[i]) {
				return
			}
		}
	}
}

// Select gives what a query finds in the newest state.
func (s *Store[T]) Select(q Query) (Page[T], error) {
	st := s.pin()
	defer s.unpin(st)
	return st.selected(q)
}

// Count counts what a query finds, without its limit and token.
func (s *Store[T]) Count(q Query) (int, error) {
	st := s.pin()
	defer s.unpin(st)
	return st.count(q)
}

// Explain shows how a query would be answered.
func (s *Store[T]) Explain(q Query) (Plan, error) {
	st := s.pin()
	defer s.unpin(st)
	return st.explained(q)
}

// Select gives what a query finds.
func (n *Snapshot[T]) Select(q Query) (Page[T], error) {
	defer runtime.KeepAlive(n)
	return n.state.selected(q)
}

// Count counts what a query finds, without its limit and token.
func (n *Snapshot[T]) Count(q Query) (int, error) {
	defer runtime.KeepAlive(n)
	return n.state.count(q)
}

// Explain shows how a query would be answered.
func (n *Snapshot[T]) Explain(q Query) (Plan, error) {
	defer runtime.KeepAlive(n)
	return n.state.explained(q)
}

func (st *state[T]) explained(q Query) (Plan, error) {
	if err := st.checked(q); err != nil {
		return Plan{}, err
	}
	p, _ := st.plan(q)
	return p, nil
}

func (st *state[T]) count(q Query) (int, error) {
	n := 0
	err := st.matches(q, "", func(*cell[T], T) (bool, error) {
		n++
		return true, nil
	})
	return n, err
}

// row is a match with what it is sorted by.
type row[T any] struct {
	values []fieldpath.Value
	key    tarn.Key
	object T
}

// selected collects the first rows behind the token. They are kept in a heap
// with the last one on top, one more than wanted, so that a short page of many
// matches neither keeps nor sorts them all.
func (st *state[T]) selected(q Query) (Page[T], error) {
	after, err := q.token()
	if err != nil {
		return Page[T]{}, err
	}
	from := ""
	if after != nil && len(q.sort) == 0 {
		from = string(after.key)
	}
	rows := rowHeap[T]{sort: q.sort}
	err = st.matches(q, from, func(c *cell[T], object T) (bool, error) {
		values, err := q.sortValues(c.key, object)
		if err != nil {
			return false, err
		}
		r := row[T]{values, c.key, object}
		if after != nil && compareRows(q.sort, r.values, r.key, after.values, after.key) <= 0 {
			return true, nil
		}
		switch {
		case q.limit == 0 || rows.Len() <= q.limit:
			heap.Push(&rows, r)
		case rows.before(r, rows.rows[0]):
			rows.rows[0] = r
			heap.Fix(&rows, 0)
		}
		// Without a sort, matches come in the order of the result.
		return len(q.sort) > 0 || q.limit == 0 || rows.Len() <= q.limit, nil
	})
	if err != nil {
		return Page[T]{}, err
	}
	return rows.page(q, st.version), nil
}

// sortValues reads what an object is sorted by.
func (q *Query) sortValues(key tarn.Key, object any) ([]fieldpath.Value, error) {
	if len(q.sort) == 0 {
		return nil, nil
	}
	values := make([]fieldpath.Value, len(q.sort))
	for i, o := range q.sort {
		values[i], _ = o.path.First(object) // a path that its type does not have is missing
		if values[i].Kind() == fieldpath.Composite {
			return nil, fmt.Errorf("query: %s of %q is an object or a list, which has no order: sort by a field in it", o.path, key)
		}
	}
	return values, nil
}

// compareRows orders two matches.
func compareRows(sort []order, a []fieldpath.Value, aKey tarn.Key, b []fieldpath.Value, bKey tarn.Key) int {
	for i, o := range sort {
		if c := a[i].Compare(b[i]); c != 0 {
			if o.down {
				return -c
			}
			return c
		}
	}
	return cmp.Compare(aKey, bKey)
}

// rowHeap has the row that comes last on top.
type rowHeap[T any] struct {
	sort []order
	rows []row[T]
}

func (h *rowHeap[T]) before(a, b row[T]) bool {
	return compareRows(h.sort, a.values, a.key, b.values, b.key) < 0
}
func (h *rowHeap[T]) Len() int           { return len(h.rows) }
func (h *rowHeap[T]) Less(i, j int) bool { return h.before(h.rows[j], h.rows[i]) }
func (h *rowHeap[T]) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *rowHeap[T]) Push(x any)         { h.rows = append(h.rows, x.(row[T])) }
func (h *rowHeap[T]) Pop() any {
	last := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return last
}

// page makes the rows a page; one more than the limit means that there is more.
func (h *rowHeap[T]) page(q Query, v tarn.Version) Page[T] {
	slices.SortFunc(h.rows, func(a, b row[T]) int { return compareRows(h.sort, a.values, a.key, b.values, b.key) })
	p := Page[T]{Version: v}
	rows := h.rows
	if q.limit > 0 && len(rows) > q.limit {
		rows = rows[:q.limit]
		last := rows[len(rows)-1]
		p.Continue = cursor{q.fingerprint(), last.values, last.key}.String()
	}
	for _, r := range rows {
		p.Keys = append(p.Keys, r.key)
		p.Objects = append(p.Objects, r.object)
	}
	return p
}

// checked says what is wrong with a query here. Where T says nothing of the
// fields, the first objects are asked.
func (st *state[T]) checked(q Query) error {
	t := reflect.TypeFor[T]()
	if err := q.check(t); err != nil || t.Kind() != reflect.Interface {
		return err
	}
	for _, path := range q.paths() {
		if err := st.checkPath(path); err != nil {
			return fmt.Errorf("query: %w", err)
		}
	}
	return nil
}

// checkedObjects is how many objects are asked whether they can have a path. A
// store of several types is rare, and hardly has more of one type in front.
const checkedObjects = 16

func (st *state[T]) checkPath(path *fieldpath.Path) (err error) {
	n := 0
	st.walk(span{}, func(_ tarn.Key, object T) bool {
		_, err = path.First(object)
		n++
		return err != nil && n < checkedObjects
	})
	return err
}

// matches gives every object that fulfils a query, in the order of keys, until
// yield is false or fails. from is the key to start at.
func (st *state[T]) matches(q Query, from string, yield func(*cell[T], T) (bool, error)) (err error) {
	if err := st.checked(q); err != nil {
		return err
	}
	p, x := st.plan(q)
	var values []fieldpath.Value
	under := prefixSpan(string(q.under))
	each := func(cells []*cell[T]) bool {
		for _, c := range cells {
			if string(c.key) < from || !under.has(string(c.key)) {
				continue
			}
			v := c.at(st.seq)
			if v == nil {
				continue
			}
			ok := true
			for i := 0; ok && i < len(p.Filter); i++ {
				// A path that the object's type does not have is missing.
				values, _ = p.Filter[i].path.Append(values[:0], v.object)
				ok = p.Filter[i].holds(values)
			}
			if !ok {
				continue
			}
			var more bool
			if more, err = yield(c, v.object); err != nil || !more {
				return false
			}
		}
		return true
	}
	if x != nil {
		x.cells(p.spans, each)
		return err
	}
	st.cells.from(max(from, under.from), func(cells []*cell[T]) bool {
		return each(cells) && (under.to == "" || string(cells[len(cells)-1].key) < under.to)
	})
	return err
}
