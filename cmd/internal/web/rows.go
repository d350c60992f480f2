package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/fieldpath"
	"github.com/tarnproject/tarn/memory/query"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// searchTime bounds one request with a token: a page may be short, or even
	// empty, as long as it has a token.
	searchTime = 250 * time.Millisecond
)

// rowsAnswer is a part of the rows that a query finds in a table.
type rowsAnswer struct {
	Table   string       `json:"table"`
	Version tarn.Version `json:"version"`
	Columns []column     `json:"columns"`
	Rows    []row        `json:"rows"`
	// Offset is the position of the rows, and Total the number of rows in all; both are
	// missing after a token.
	Offset *int `json:"offset,omitempty"`
	Total  *int `json:"total,omitempty"`
	// Behind says that the rows' order is no longer the newest: request it again in
	// a moment.
	Behind bool `json:"behind,omitempty"`
	// Continue is missing after the last row.
	Continue string `json:"continue,omitempty"`
	// Past has the moment of the rows, if it is not the present. Then there is no version: a
	// moment may lie between two.
	Past *pastAnswer `json:"past,omitempty"`
}

type row struct {
	Key   tarn.Key `json:"key"`
	Cells []string `json:"cells,omitempty"`
	// Gone says that the object was deleted while the order was kept.
	Gone bool `json:"gone,omitempty"`
}

// rowsQuery is a parsed request for rows.
type rowsQuery struct {
	table  *mirror.Table
	text   string
	query  search
	sort   string
	limit  int
	offset int
	token  string
	// placed says that rows are selected by their position.
	placed bool
}

// rows answers /api/tables/{table}.
func (s *Site) rows(r *http.Request) (any, *failure) {
	table, problem := s.table(r.PathValue("table"))
	if problem != nil {
		return nil, problem
	}
	q, err := s.readRowsQuery(table, r.URL.Query())
	if err != nil {
		return nil, badRequest(err)
	}
	at, err := readMoment(r.URL.Query().Get("at"), time.Now())
	if err != nil {
		return nil, badRequest(err)
	}
	found := rowsAnswer{Table: table.Resource().Name(), Columns: s.columns(table), Rows: []row{}}
	if !at.IsZero() {
		if problem := s.rowsAsOf(r, q, at, &found); problem != nil {
			return nil, problem
		}
		return found, nil
	}
	if q.placed {
		err = s.placedRows(r.Context(), q, &found)
	} else {
		err = s.followedRows(q, &found)
	}
	if err != nil {
		return nil, badRequest(err)
	}
	return found, nil
}

func (s *Site) readRowsQuery(table *mirror.Table, values url.Values) (q rowsQuery, err error) {
	q = rowsQuery{table: table, text: strings.TrimSpace(values.Get("q")), token: values.Get("continue")}
	if q.query, err = parseSearch(q.text); err != nil {
		return q, err
	}
	if err := s.secretFilter.permits(table.Resource(), q.query); err != nil {
		return q, err
	}
	if q.sort, err = s.readSort(table, values.Get("sort")); err != nil {
		return q, err
	}
	if q.limit, err = readNumber(values, "limit", defaultLimit, 1, maxLimit); err != nil {
		return q, err
	}
	q.placed = values.Has("offset")
	if q.placed && q.token != "" {
		return q, fmt.Errorf("offset and continue are two ways to say where to go on: give one")
	}
	q.offset, err = readNumber(values, "offset", 0, 0, 1<<31-1)
	return q, err
}

// readSort checks a path, with a - in front for descending order.
func (s *Site) readSort(table *mirror.Table, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if len(text) > maxQuery {
		return "", fmt.Errorf("sort has %d bytes: %d are enough for any field", len(text), maxQuery)
	}
	name, down := strings.CutPrefix(text, "-")
	path, err := fieldpath.Parse(name)
	if err != nil {
		return "", err
	}
	if err := s.secretFilter.permitsPath(table.Resource(), path.String()); err != nil {
		return "", err
	}
	if down {
		return "-" + path.String(), nil
	}
	return path.String(), nil
}

func readNumber(values url.Values, name string, otherwise, low, high int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s=%s: a number from %d to %d is wanted", name, text, low, high)
	}
	return n, nil
}

// placedRows returns rows by their position, and their total number.
func (s *Site) placedRows(ctx context.Context, q rowsQuery, found *rowsAnswer) error {
	order, err := s.orders.get(ctx, q.table, q.text, q.query, q.sort)
	if err != nil {
		return err
	}
	total, offset := len(order.keys), min(q.offset, len(order.keys))
	found.Version, found.Total, found.Offset, found.Behind = order.version, &total, &offset, order.behind
	for _, key := range order.keys[offset:min(offset+q.limit, total)] {
		object, ok := q.table.Store().Get(key)
		if !ok {
			found.Rows = append(found.Rows, row{Key: key, Gone: true})
			continue
		}
		found.Rows = append(found.Rows, s.row(q.table, found.Columns, key, object))
	}
	return nil
}

// followedRows returns the rows after a token. Each step reads as many objects as
// are still missing, so that the store's token is always that of the last row.
func (s *Site) followedRows(q rowsQuery, found *rowsAnswer) error {
	mq := q.query.filters()
	if q.sort != "" {
		mq = mq.Sort(q.sort)
	}
	found.Continue = q.token
	for until := time.Now().Add(searchTime); ; {
		page, err := q.table.Store().Select(mq.Limit(q.limit - len(found.Rows)).After(found.Continue))
		if err != nil {
			return err
		}
		s.take(q, page, found)
		if found.Continue == "" || len(found.Rows) == q.limit || time.Now().After(until) {
			return nil
		}
	}
}

func (s *Site) take(q rowsQuery, page query.Page[mirror.Object], found *rowsAnswer) {
	found.Version, found.Continue = page.Version, page.Continue
	for key, object := range page.All() {
		if q.query.matches(key, object) {
			found.Rows = append(found.Rows, s.row(q.table, found.Columns, key, object))
		}
	}
}

// columns returns the columns of a table, with the cluster if there are several.
func (s *Site) columns(table *mirror.Table) []column {
	columns := columnsOf(table.Resource())
	if s.mirror.Fleet() {
		columns = append([]column{{Name: "Cluster", Type: "text", cluster: true}}, columns...)
	}
	return columns
}

func (s *Site) row(table *mirror.Table, columns []column, key tarn.Key, object mirror.Object) row {
	content := s.secretFilter.content(table, object)
	cells := make([]string, len(columns))
	for i, c := range columns {
		if c.cluster {
			cells[i] = strings.TrimSuffix(string(s.mirror.ClusterPrefix(key)), "/")
			continue
		}
		cells[i] = c.cell(content)
	}
	return row{Key: key, Cells: cells}
}
