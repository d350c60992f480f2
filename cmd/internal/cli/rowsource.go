package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/reasons"
	"github.com/tarnproject/tarn/internal/render"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// row is an object in the form of the server's table.
type row struct {
	meta            tarn.Meta
	namespace, name string
	created         time.Time
	cells           []string
}

// rowSource reads a collection of the server as the rows of its table: the columns that
// kubectl shows. The engine that keeps objects keeps these rows up to date.
//
// Why not objects, with columns made here: only the server knows the columns of its kinds,
// and those that custom resources define.
type rowSource struct {
	reader *reader
	place  location
	list   metav1.ListOptions

	mu      sync.Mutex
	columns []metav1.TableColumnDefinition
}

var _ tarn.Source[*row] = (*rowSource)(nil)

// Columns are the columns of the cells, as far as they are known.
func (s *rowSource) Columns() []metav1.TableColumnDefinition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns
}

// learn remembers the columns, which only the first table of a watch has.
func (s *rowSource) learn(table *metav1.Table) {
	if len(table.ColumnDefinitions) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.columns = table.ColumnDefinitions
}

// List reads one page.
func (s *rowSource) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[*row], error) {
	opts := s.list
	opts.Limit, opts.Continue = q.Limit, q.Continue
	if q.Continue == "" {
		opts.ResourceVersion = string(q.AtLeast)
	}
	table, err := s.reader.tablePage(ctx, s.place, opts, false)
	if err != nil {
		return tarn.Page[*row]{}, s.failed(ctx, "list", err)
	}
	s.learn(table)
	page := tarn.Page[*row]{Version: tarn.Version(table.ResourceVersion), Continue: table.Continue}
	for _, r := range table.Rows {
		page.Items = append(page.Items, rowOf(r))
	}
	return page, nil
}

// Watch opens a stream. It never begins with initial events: a table of many rows
// is smaller than as many tables of one.
func (s *rowSource) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[*row], error) {
	opts := s.list
	opts.Watch = true
	opts.ResourceVersion = string(q.From)
	opts.AllowWatchBookmarks = true
	opts.TimeoutSeconds = ptr.To(int64(q.Timeout.Seconds()))
	life, cancel := context.WithCancel(ctx)
	body, err := s.reader.request(s.place, acceptTable, opts).Stream(life)
	if err != nil {
		cancel()
		return nil, s.failed(ctx, "watch", err)
	}
	return newRowStream(s, life, cancel, body), nil
}

// Describe reads a row's identity.
func (s *rowSource) Describe(r *row) (tarn.Meta, error) {
	if r == nil || r.meta.Key == "" {
		return tarn.Meta{}, errors.New("the row has no name")
	}
	return r.meta, nil
}

func (s *rowSource) failed(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return reasons.Classify(fmt.Errorf("cannot %s %s: %w", verb, s.place.resource.Name(), err), isLost)
}

// rowOf makes a row from the server's row. Every cell is text, also a number.
func rowOf(r metav1.TableRow) *row {
	made := &row{cells: make([]string, len(r.Cells))}
	for i, cell := range r.Cells {
		if cell != nil {
			made.cells[i] = render.Cut(strings.TrimSpace(fmt.Sprint(cell)), widestCell)
		}
	}
	object, ok := r.Object.Object.(metav1.Object)
	if !ok {
		return made
	}
	made.namespace, made.name = object.GetNamespace(), object.GetName()
	made.created = object.GetCreationTimestamp().Time
	made.meta = tarn.Meta{Version: tarn.Version(object.GetResourceVersion()), UID: string(object.GetUID())}
	switch {
	case made.name == "":
	case made.namespace == "":
		made.meta.Key = tarn.Key(made.name)
	default:
		made.meta.Key = tarn.Key(made.namespace + "/" + made.name)
	}
	return made
}

func sameRow(a, b *row) bool { return a.meta == b.meta && slices.Equal(a.cells, b.cells) }
