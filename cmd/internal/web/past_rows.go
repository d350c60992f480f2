package web

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory/query"
)

// pastCache keeps the rows that recent queries found in the past, so that a page can scroll
// through them without reading the history again.
//
// Why rows and not objects: the objects of a large table in the past would need as much
// memory as the mirror itself. The history is read object by object, and only the visible
// cells and the labels of each object stay. Words are searched in these rows, so that a
// search while the user types does not read the history for each letter.
type pastCache struct {
	// turns has a slot for each request that reads the history.
	turns chan struct{}

	mu  sync.Mutex
	all map[pastKey]*pastRows
	now func() time.Time
}

// pastKey identifies an answer by the terms that are not words. A place in a log keeps its
// content.
type pastKey struct {
	table, filters, sort string
	place                changelog.Seq
}

// pastRow is a row with the text that words are searched in.
type pastRow struct {
	row
	labels mirror.Object
}

type pastRows struct {
	rows []pastRow
	size int
	used time.Time
}

const (
	// maxPastBytes bounds all rows that are kept, maxPastAnswer those of one answer.
	maxPastBytes  = 32 << 20
	maxPastAnswer = 128 << 20
	// These are the bytes that a row, a cell and a label need besides their text.
	rowOverhead, cellOverhead, labelOverhead = 500, 16, 100
)

func newPastCache() *pastCache {
	return &pastCache{turns: make(chan struct{}, pastAtOnce), all: map[pastKey]*pastRows{}, now: time.Now}
}

func (c *pastCache) get(key pastKey) ([]pastRow, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for other, kept := range c.all {
		if now.Sub(kept.used) > orderIdle {
			delete(c.all, other)
		}
	}
	found, ok := c.all[key]
	if !ok {
		return nil, false
	}
	found.used = now
	return found.rows, true
}

// put keeps an answer, and drops the least recently used ones while there is too much.
func (c *pastCache) put(key pastKey, rows []pastRow, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > maxPastBytes {
		return
	}
	c.all[key] = &pastRows{rows, size, c.now()}
	total := 0
	for _, kept := range c.all {
		total += kept.size
	}
	for total > maxPastBytes {
		oldest := key
		for other, kept := range c.all {
			if kept.used.Before(c.all[oldest].used) || oldest == key {
				oldest = other
			}
		}
		total -= c.all[oldest].size
		delete(c.all, oldest)
	}
}

// rowsAsOf answers /api/tables/{table} with a moment.
func (s *Site) rowsAsOf(r *http.Request, q rowsQuery, at time.Time, found *rowsAnswer) *failure {
	return s.readPast(r, at, func(past *pastReader) error {
		place, err := past.AtTime(past.ctx, at)
		if err != nil {
			return err
		}
		past.about.Gaps = gapsOf(place.Gaps)
		found.Past = &past.about
		key := pastKey{past.table.Resource().Name(), q.query.filters().String(), q.sort, place.Seq}
		rows, ok := s.past.get(key)
		if !ok {
			var size int
			if rows, size, err = s.pastRows(past, q, place, found.Columns); err != nil {
				return err
			}
			s.past.put(key, rows, size)
		}
		var matching []row
		for _, r := range rows {
			if q.query.matches(r.Key, r.labels) {
				matching = append(matching, r.row)
			}
		}
		return cutRows(q, place.Seq, matching, found)
	})
}

// cutRows selects the rows of a page.
func cutRows(q rowsQuery, place changelog.Seq, rows []row, found *rowsAnswer) error {
	offset, total := q.offset, len(rows)
	if q.token != "" {
		var at changelog.Seq
		if _, err := fmt.Sscanf(q.token, "%d.%d", &at, &offset); err != nil || at != place || offset < 0 {
			return badRequest(fmt.Errorf("the continue token %q belongs to another query or moment: begin again, with a time and not with an age", q.token))
		}
	}
	offset = min(offset, total)
	end := min(offset+q.limit, total)
	found.Rows = append(found.Rows, rows[offset:end]...)
	if q.placed {
		found.Offset, found.Total = &offset, &total
	} else if end < total {
		found.Continue = fmt.Sprintf("%d.%d", place, end)
	}
	return nil
}

// pastRows reads the rows that the filters of a query find at a place, in order, and about
// how many bytes they hold.
func (s *Site) pastRows(past *pastReader, q rowsQuery, place changelog.Place, columns []column) (rows []pastRow, size int, err error) {
	order, err := newPastOrder(q.sort)
	if err != nil {
		return nil, 0, badRequest(err)
	}
	for e, err := range past.AsOf(past.ctx, place) {
		if err != nil {
			return nil, 0, err
		}
		if e.Gap != nil {
			continue
		}
		object, err := past.Decode(e.State)
		if err != nil {
			return nil, 0, err
		}
		if ok, err := q.query.filtersFind(e.Key, object); err != nil || !ok {
			if err != nil {
				return nil, 0, badRequest(err)
			}
			continue
		}
		if err := order.add(e.Key, object); err != nil {
			return nil, 0, badRequest(err)
		}
		shown := pastRow{s.row(past.table, columns, e.Key, object), labelsOf(object)}
		size += rowOverhead + len(e.Key)
		for name, value := range shown.labels.GetLabels() {
			size += labelOverhead + len(name) + len(value)
		}
		for i, cell := range shown.Cells {
			shown.Cells[i] = strings.Clone(cell) // it may be a part of a larger text
			size += cellOverhead + len(cell)
		}
		if rows = append(rows, shown); size > maxPastAnswer {
			return nil, 0, &failure{http.StatusBadRequest, fmt.Sprintf("the first %d rows have more than %d MB: ask for less by a label or a field, or by SQL", len(rows), maxPastAnswer>>20)}
		}
	}
	return order.sort(rows), size, nil
}

// pastOrder sorts rows as a store does: by a field, and by their keys where that is equal.
type pastOrder struct {
	path   *fieldpath.Path
	down   bool
	values map[tarn.Key]fieldpath.Value
}

func newPastOrder(sort string) (*pastOrder, error) {
	o := &pastOrder{values: map[tarn.Key]fieldpath.Value{}}
	name, down := strings.CutPrefix(sort, "-")
	o.down = down
	if name == "" {
		return o, nil
	}
	var err error
	o.path, err = fieldpath.Parse(name)
	return o, err
}

func (o *pastOrder) add(key tarn.Key, object mirror.Object) error {
	if o.path == nil {
		return nil
	}
	value, _ := o.path.First(object) // a path that the object does not have is missing
	if value.Kind() == fieldpath.Composite {
		return fmt.Errorf("%s of %q is an object or a list, which has no order: sort by a field in it", o.path, key)
	}
	o.values[key] = value
	return nil
}

func (o *pastOrder) sort(rows []pastRow) []pastRow {
	slices.SortFunc(rows, func(a, b pastRow) int {
		c := o.values[a.Key].Compare(o.values[b.Key])
		if o.down {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.Key, b.Key))
	})
	return rows
}

// labelsOf is an object with only the labels.
func labelsOf(object mirror.Object) mirror.Object {
	labels := map[string]any{}
	for name, value := range object.GetLabels() {
		labels[strings.Clone(name)] = strings.Clone(value)
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": labels}}}
}

// filtersFind reports whether an object matches all terms that are not words.
func (q search) filtersFind(key tarn.Key, object mirror.Object) (bool, error) {
	if len(q.labels)+len(q.fields) == 0 {
		return true, nil
	}
	n, err := query.Count(alone{key, object}, q.filters())
	return n == 1, err
}

// alone is a state with one object, to test whether a query finds that object.
type alone struct {
	key    tarn.Key
	object mirror.Object
}

func (alone) Version() tarn.Version    { return "" }
func (alone) Len() int                 { return 1 }
func (alone) CountKeys(query.Span) int { return 1 }
func (alone) Indexes() iter.Seq[query.Index[mirror.Object]] {
	return func(func(query.Index[mirror.Object]) bool) {}
}
func (a alone) Scan(_ query.Span, yield func(tarn.Key, mirror.Object) bool) { yield(a.key, a.object) }

func (alone) Index(name string) (query.Index[mirror.Object], error) {
	return nil, fmt.Errorf("there is no index %q in the past", name)
}

func (alone) ScanIndex(query.Index[mirror.Object], []query.Span, query.Span, func(tarn.Key, mirror.Object) bool) {
}
