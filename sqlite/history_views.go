package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// A Moment is a place in the histories of a directory: a time, by when the mirror that wrote
// the directory had received a state, or a version. The zero value is the present.
type Moment struct {
	Time    time.Time
	Version tarn.Version
}

// Present reports whether it is the zero value.
func (m Moment) Present() bool { return m.Time.IsZero() && m.Version == "" }

func (m Moment) String() string {
	switch {
	case m.Present():
		return "now"
	case m.Version != "":
		return "version " + string(m.Version)
	}
	return m.Time.Format(time.RFC3339Nano)
}

// Query runs a statement on the file of a directory like the function [Query], but on tables
// as of the moment: all of them as received by one time, or all at one version. A statement
// fails if it reads a table without a history, or a table whose history does not reach back
// that far.
func (m Moment) Query(ctx context.Context, dir, sql string, limits Limits, args ...any) (*Result, error) {
	return gather(ctx, dir, m, sql, limits, args)
}

// Stream is like Query, but passes on the rows one by one; see the function [Stream].
func (m Moment) Stream(ctx context.Context, dir, sql string, limits Limits, to RowWriter, args ...any) (Summary, error) {
	return stream(ctx, dir, m, sql, limits.withDefaults(), to, 0, args)
}

// past makes the views of the past for one statement: those with the suffix _history, and
// those that show tables as of a moment in place of the tables themselves. They are
// temporary views of the statement's own connection, since they need functions that other
// tools do not have.
type past struct {
	at   Moment
	keys *fileKeys
	// logs has the logs that the statement may read, by their ids.
	logs map[int64]*pastLog
	// last holds what was last computed for an object.
	last struct {
		id, life, place int64
		parts           map[string]JSON
	}
	buf []byte
}

// pastLog is the log of one collection.
type pastLog struct {
	*logSession
	place changelog.Place
	// err is why there is no state at the moment.
	err    error
	render Renderer
}

// build makes the views that a statement names.
func (p *past) build(conn *sqlite3.Conn, sql string) error {
	lower := strings.ToLower(sql)
	if p.at.Present() && !strings.Contains(lower, historySuffix) {
		return nil
	}
	known, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name='tarn_logs'")
	if err != nil || known == 0 {
		return err
	}
	if p.keys, err = readKeys(conn, nil); err != nil {
		return nil // it is encrypted, and has no tables
	}
	var rows []collectionRow
	err = query(conn, "SELECT "+collectionColumns+" FROM tarn_collections WHERE id IN (SELECT id FROM tarn_logs)", func(row *sqlite3.Stmt) error {
		r, err := scanCollection(row, p.keys)
		rows = append(rows, r)
		return err
	})
	if err != nil {
		return err
	}
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	if err := first(conn.CreateFunction("tarn_part", 10, flags, p.part), conn.CreateFunction("tarn_value", 3, flags, valueFunction)); err != nil {
		return err
	}
	p.logs = map[int64]*pastLog{}
	for _, row := range rows {
		if !strings.Contains(lower, strings.ToLower(row.name)) {
			continue
		}
		if err := p.add(conn, row, lower); err != nil {
			return err
		}
	}
	return nil
}

const historySuffix = "_history"

// add makes the views of one collection.
func (p *past) add(conn *sqlite3.Conn, row collectionRow, lower string) error {
	s := &logSession{reader: &reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}, id: row.id, row: row, keys: p.keys, packer: &packer{owner: row.name, keys: p.keys}}
	var err error
	if s.state, _, err = readLog(conn, p.keys, row.id, row.name); err != nil {
		return err
	}
	columns, err := decodeColumns(s.state.columns)
	if err != nil || len(columns) == 0 {
		return err
	}
	dictionary, err := s.packer.readDictionary(conn, row.id)
	if err == nil {
		err = s.packer.use(dictionary)
	}
	if err != nil {
		return err
	}
	l := &pastLog{logSession: s, render: rendererOf(row)}
	p.logs[row.id] = l
	if l.err = notRewriting(conn, row); l.err != nil && damaged(l.err) {
		return l.err
	}
	var views []string
	if strings.Contains(lower, strings.ToLower(row.name)+historySuffix) {
		views = append(views, historyView(row, columns, s.state))
	}
	if !p.at.Present() {
		if l.err == nil {
			l.place, l.err = p.find(s)
		}
		if damaged(l.err) {
			return l.err
		}
		views = append(views, asOfViews(row, columns, int64(l.place.Seq))...)
	}
	for _, sql := range views {
		// One statement only: the expressions of columns are from the file.
		stmt, rest, err := conn.Prepare(sql)
		if err == nil && strings.TrimSpace(rest) != "" {
			err = fmt.Errorf("%w: a column of %s is not an expression", errSchema, row.name)
		}
		if err == nil {
			_, err = step(stmt)
			err = first(err, stmt.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *past) find(s *logSession) (changelog.Place, error) {
	if p.at.Version != "" {
		return s.findVersion(p.at.Version)
	}
	return s.findTime(p.at.Time)
}

// check reports whether a statement can be answered, by the tables that it reads, and
// which gaps the answer touches.
func (p *past) check(conn *sqlite3.Conn, guard *authorizer) (gaps []TableGap, err error) {
	if without := slices.Sorted(mapsKeys(guard.present)); len(without) > 0 && !p.at.Present() {
		name := ""
		err := query(conn, "SELECT name FROM tarn_collections WHERE id=?", func(row *sqlite3.Stmt) error {
			name = row.ColumnText(0)
			return nil
		}, without[0])
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w: it cannot be shown as of %s", name, changelog.ErrNoLog, p.at)
	}
	for _, id := range slices.Sorted(mapsKeys(guard.past)) {
		l := p.logs[id]
		if l == nil {
			continue
		}
		if l.err != nil {
			return nil, l.err
		}
		touched := l.place.Gaps
		if p.at.Present() || guard.whole[id] {
			touched = nil
			err := l.gaps("seq>=0", func(g changelog.Gap) error {
				touched = append(touched, g)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		for _, g := range touched {
			gaps = append(gaps, TableGap{l.row.name, g})
		}
	}
	return gaps, nil
}

// TableGap is a gap in the history of a collection that an answer touches.
type TableGap struct {
	// Table is the name of the collection.
	Table string
	changelog.Gap
}

func (g TableGap) String() string { return g.Table + ": " + g.Gap.String() }

// asOfViews show a collection, its labels and its lists as of a place. SQLite leaves out the
// joins that a statement does not need, because they are outer ones to at most one row.
func asOfViews(row collectionRow, columns []logColumn, place int64) []string {
	id, at := row.id, fmt.Sprint(place)
	values := columnValues(id, columns, at)
	shown := []string{"l.id AS id", "l.key AS key"}
	for i, c := range columns {
		if !c.Gone {
			shown = append(shown, values[i]+" AS "+quote(c.Name))
		}
	}
	from := fmt.Sprintf("FROM main.%s l LEFT JOIN main.%s s ON s.life=l.id AND s.seq=(SELECT max(n.seq) FROM main.%[2]s n WHERE n.life=l.id AND n.seq<=%[4]s) LEFT JOIN main.%[3]s b ON b.id=s.base",
		livesTable(id), statesTable(id), basesTable(id), at)
	lived := fmt.Sprintf("WHERE l.last>%s AND l.first<=%[1]s", at)
	all := []string{
		fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT %s %s %s", quote(row.name), strings.Join(shown, ", "), from, lived),
		fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT l.id AS id, j.key AS name, j.value AS value %s, json_each(%s) j %s", quote(labelsView(row.name)), from, values[0], lived),
	}
	for _, l := range layoutOf(row).lists {
		all = append(all, fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT r.id AS id, j.value AS %s, nullif(r.%s, '') AS %[3]s FROM temp.%s r, json_each(r.%s) j WHERE j.type = 'text'",
			quote(l.view(row.name)), quote(l.Element), quote(l.Beside), quote(row.name), quote(l.Column)))
	}
	return all
}

// historyView shows the states of a collection, beginning with those that were valid at its
// horizon: earlier ones may have been pruned in part. The plus signs keep SQLite from using
// an index for these bounds, because nearly all states are within them: it must use the index
// of the key or of the time.
func historyView(row collectionRow, columns []logColumn, at logState) string {
	id := row.id
	states := statesTable(id)
	values := columnValues(id, columns, "s.seq")
	shown := []string{
		"l.id AS id", "l.key AS key", "CASE s.op WHEN 1 THEN 'added' WHEN 2 THEN 'modified' ELSE 'deleted' END AS operation", "CAST(s.version AS TEXT) AS version",
		"s.heard_ms / 1000.0 AS valid_from",
		fmt.Sprintf("CASE s.op WHEN 3 THEN s.heard_ms ELSE coalesce(s.until_ms, (SELECT n.heard_ms FROM main.%s n WHERE n.life=s.life AND n.seq>s.seq ORDER BY n.seq LIMIT 1)) END / 1000.0 AS valid_to", states),
	}
	names := historyNames(columns)
	for i, c := range columns {
		if !c.Gone {
			shown = append(shown, values[i]+" AS "+quote(names[i]))
		}
	}
	return fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT %s, s.seq AS seq FROM main.%s s JOIN main.%s l ON l.id=s.life LEFT JOIN main.%s b ON b.id=s.base WHERE +s.seq <= %d AND +l.last > %d AND (+s.seq > %[7]d OR NOT EXISTS (SELECT 1 FROM main.%[3]s n WHERE n.life=s.life AND n.seq>s.seq AND n.seq<=%[7]d))",
		quote(row.name+historySuffix), strings.Join(shown, ", "), states, livesTable(id), basesTable(id), at.shown, at.horizon)
}

// historyNames returns the names of a table's columns in its view of states. A column with
// the same name as one of the view's own gets the suffix _column, so that version or
// valid_from mean the same for every resource: printer columns of custom resources may have
// any names.
func historyNames(columns []logColumn) []string {
	taken := map[string]bool{"id": true, "key": true, "operation": true, "version": true, "valid_from": true, "valid_to": true, "seq": true}
	own := maps.Clone(taken)
	for _, c := range columns {
		if !c.Gone {
			taken[strings.ToLower(c.Name)] = true
		}
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		if names[i] = c.Name; c.Gone || !own[strings.ToLower(c.Name)] {
			continue
		}
		for taken[strings.ToLower(names[i])] {
			names[i] += "_column"
		}
		taken[strings.ToLower(names[i])] = true
	}
	return names
}

// columnValues returns the SQL expressions of the columns of a life l at a place, from its
// state s and the base b of that state.
func columnValues(id int64, columns []logColumn, place string) []string {
	values := make([]string, len(columns))
	names := []string{"{key}", "l.key"}
	by := map[string]string{}
	for i, c := range columns {
		switch c.Kind {
		case versionKind:
			values[i] = "CAST(s.version AS TEXT)"
		case "":
			values[i] = columnValue(i)
		}
		if !c.Gone {
			by[strings.ToLower(c.Name)] = values[i]
		}
	}
	for i, c := range columns {
		if c.Kind == wideKind {
			part := partValue(id, c.Name, place)
			if fill := by[strings.ToLower(c.Fill)]; c.Fill != "" && fill != "" {
				part = fmt.Sprintf("replace(%s, char(%d), coalesce(%s, ''))", part, Hole[0], fill)
			}
			values[i] = part
		}
		if !c.Gone {
			names = append(names, "{"+c.Name+"}", values[i])
		}
	}
	for i, c := range columns {
		if c.Kind == computedKind {
			values[i] = "(" + strings.NewReplacer(names...).Replace(c.Expr) + ")"
		}
	}
	return values
}

// text is a literal of SQL.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
