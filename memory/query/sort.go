package query

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// row is a match with its sort values.
type row[T any] struct {
	values []fieldpath.Value
	key    tarn.Key
	object T
}

// sortValues reads the sort values of an object.
func (q *Query) sortValues(key tarn.Key, object any) ([]fieldpath.Value, error) {
	values := make([]fieldpath.Value, len(q.sort))
	for i, o := range q.sort {
		values[i], _ = o.path.First(object) // a path that the type does not have is missing
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

// rowHeap has the last row of the order on top.
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

// page makes a page of the rows; one more than the limit means that there is
// another page.
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
