package query

import (
	"container/heap"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// Page is one page of the result of a query.
type Page[T any] struct {
	Keys    []tarn.Key
	Objects []T
	// Version is the version of the state that was read.
	Version tarn.Version
	// Continue is for [Query.After], empty on the last page.
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

// Explain shows how a query would be answered from a state.
func Explain[T any](st State[T], q Query) (Plan, error) {
	if err := checkedFor(st, q); err != nil {
		return Plan{}, err
	}
	p, _ := planOf(st, q)
	return p, nil
}

// Count counts the result of a query in a state, without its limit and token.
func Count[T any](st State[T], q Query) (int, error) {
	n := 0
	err := matches(st, q, "", func(tarn.Key, T) (bool, error) {
		n++
		return true, nil
	})
	return n, err
}

// Select returns the result of a query in a state.
//
// It collects the rows after the token. With a limit it keeps them in a heap with
// the last one on top, one more than the limit, so that a short page of many
// matches neither keeps nor sorts them all.
func Select[T any](st State[T], q Query) (Page[T], error) {
	after, err := q.token()
	if err != nil {
		return Page[T]{}, err
	}
	if len(q.sort) == 0 {
		return inOrder(st, q, after)
	}
	rows := rowHeap[T]{sort: q.sort}
	err = matches(st, q, "", func(key tarn.Key, object T) (bool, error) {
		values, err := q.sortValues(key, object)
		if err != nil {
			return false, err
		}
		r := row[T]{values, key, object}
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
	return rows.page(q, st.Version()), nil
}

// inOrder is Select without a sort: matches come in the order of the result.
func inOrder[T any](st State[T], q Query, after *cursor) (Page[T], error) {
	p := Page[T]{Version: st.Version()}
	if len(q.conditions) == 0 && q.under == "" {
		n := st.Len()
		if q.limit > 0 {
			n = min(n, q.limit)
		}
		p.Keys, p.Objects = make([]tarn.Key, 0, n), make([]T, 0, n)
	}
	from := ""
	if after != nil {
		from = string(after.key) + "\x00" // the smallest key after it
	}
	err := matches(st, q, from, func(key tarn.Key, object T) (bool, error) {
		if q.limit > 0 && len(p.Keys) == q.limit {
			p.Continue = cursor{query: q.fingerprint(), key: p.Keys[q.limit-1]}.String()
			return false, nil
		}
		p.Keys, p.Objects = append(p.Keys, key), append(p.Objects, object)
		return true, nil
	})
	if err != nil {
		return Page[T]{}, err
	}
	return p, nil
}

// checkedFor returns what is wrong with a query for a state. If T does not say
// which fields there are, it checks the first objects.
func checkedFor[T any](st State[T], q Query) error {
	t := reflect.TypeFor[T]()
	if err := q.check(t); err != nil {
		return err
	}
	for _, c := range q.conditions {
		if c.index == "" {
			continue
		}
		if _, err := st.Index(c.index); err != nil {
			return fmt.Errorf("query: %w", err)
		}
	}
	if t.Kind() != reflect.Interface {
		return nil
	}
	for _, path := range q.paths() {
		if err := checkPath(st, path); err != nil {
			return fmt.Errorf("query: %w", err)
		}
	}
	return nil
}

// checkedObjects is how many objects are checked for a path. A store of several
// types is rare, and hardly has more than that of one type in front.
const checkedObjects = 16

func checkPath[T any](st State[T], path *fieldpath.Path) (err error) {
	n := 0
	st.Scan(Span{}, func(_ tarn.Key, object T) bool {
		_, err = path.First(object)
		n++
		return err != nil && n < checkedObjects
	})
	return err
}

// matches yields every object that fulfils a query, in the order of keys, until
// yield returns false or fails. from is the key to start at.
func matches[T any](st State[T], q Query, from string, yield func(tarn.Key, T) (bool, error)) (err error) {
	if err := checkedFor(st, q); err != nil {
		return err
	}
	p, x := planOf(st, q)
	tests := make([]func(T) bool, len(p.Filter))
	for i := range p.Filter {
		tests[i] = testOf(st, &p.Filter[i])
	}
	each := func(key tarn.Key, object T) (more bool) {
		if slices.ContainsFunc(tests, func(holds func(T) bool) bool { return !holds(object) }) {
			return true
		}
		more, err = yield(key, object)
		return more && err == nil
	}
	keys := PrefixSpan(string(q.under))
	keys.From = max(keys.From, from)
	if x != nil {
		st.ScanIndex(x, p.spans, keys, each)
	} else {
		st.Scan(keys, each)
	}
	return err
}
