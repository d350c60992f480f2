package memory

import (
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

// selected collects the rows behind the token. If there is a limit, they are kept in
// a heap with the last one on top, one more than wanted, so that a short page of many
// matches neither keeps nor sorts them all.
func (st *state[T]) selected(q Query) (Page[T], error) {
	after, err := q.token()
	if err != nil {
		return Page[T]{}, err
	}
	if len(q.sort) == 0 {
		return st.inOrder(q, after)
	}
	rows := rowHeap[T]{sort: q.sort}
	err = st.matches(q, "", func(c *cell[T], object T) (bool, error) {
		values, err := q.sortValues(c.key, object)
		if err != nil {
			return false, err
		}
		r := row[T]{values, c.key, object}
		if after != nil && compareRows(q.sort, r.values, r.key, after.values, after.key) <= 0 {
			return true, nil
		}
		switch {
		case q.limit == 0:
			rows.rows = append(rows.rows, r)
		case rows.Len() <= q.limit:
			heap.Push(&rows, r)
		case rows.before(r, rows.rows[0]):
			rows.rows[0] = r
			heap.Fix(&rows, 0)
		}
		return true, nil
	})
	if err != nil {
		return Page[T]{}, err
	}
	return rows.page(q, st.version), nil
}

// inOrder is selected without a sort: matches come in the order of the result.
func (st *state[T]) inOrder(q Query, after *cursor) (Page[T], error) {
	p := Page[T]{Version: st.version}
	if len(q.conditions) == 0 && q.under == "" {
		n := st.cells.n
		if q.limit > 0 {
			n = min(n, q.limit)
		}
		p.Keys, p.Objects = make([]tarn.Key, 0, n), make([]T, 0, n)
	}
	from := ""
	if after != nil {
		from = string(after.key) + "\x00" // the next key that there can be
	}
	err := st.matches(q, from, func(c *cell[T], object T) (bool, error) {
		if q.limit > 0 && len(p.Keys) == q.limit {
			p.Continue = cursor{query: q.fingerprint(), key: p.Keys[q.limit-1]}.String()
			return false, nil
		}
		p.Keys, p.Objects = append(p.Keys, c.key), append(p.Objects, object)
		return true, nil
	})
	if err != nil {
		return Page[T]{}, err
	}
	return p, nil
}

// checked says what is wrong with a query here. Where T says nothing of the
// fields, the first objects are asked.
func (st *state[T]) checked(q Query) error {
	t := reflect.TypeFor[T]()
	if err := q.check(t); err != nil {
		return err
	}
	for _, c := range q.conditions {
		if c.index == "" {
			continue
		}
		if _, err := st.shelf(c.index); err != nil {
			return fmt.Errorf("query: %w", err)
		}
	}
	if t.Kind() != reflect.Interface {
		return nil
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
	tests := make([]func(T) bool, len(p.Filter))
	for i := range p.Filter {
		tests[i] = st.test(&p.Filter[i])
	}
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
			if slices.ContainsFunc(tests, func(holds func(T) bool) bool { return !holds(v.object) }) {
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
	st.leaves(max(from, under.from), func(leaf *node[*cell[T]], first int) bool {
		cells := leaf.items[first:]
		return each(cells) && (under.to == "" || string(cells[len(cells)-1].key) < under.to)
	})
	return err
}
