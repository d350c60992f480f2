package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// An update of a row sets what has changed, and the columns without an index: SQLite
// rewrites an index whenever one of its columns is set, even to the same value. A pod that
// becomes ready changes two of its indexes.
//
// Why not one statement for a column: each statement looks the row up and writes it again.
// Few sets of columns change together, so there is a statement for each set that was seen.

// rowParts is a set of indexed columns and of the labels.
type rowParts uint64

const (
	labelsPart rowParts = 1
	// allParts also stands for sets that have no statement of their own.
	allParts = ^rowParts(0)
	// mostUpdates bounds the statements.
	mostUpdates = 32
)

// part returns the set of one indexed column, by its place among the indexed columns.
func part(n int) rowParts {
	if n >= 62 {
		return allParts
	}
	return 1 << (n + 1)
}

// part returns the set of one indexed column.
func (p *prepared) part(column string) rowParts {
	return part(slices.Index(p.finding, p.place(column)))
}

// rowUpdate is a statement that updates a row. It has the id as ?1, the checksum as ?2, then
// the labels, if it sets them, and the columns.
type rowUpdate struct {
	stmt    *sqlite3.Stmt
	labels  bool
	columns []int
}

// rowUpdates has the updates of a table by what they change.
type rowUpdates struct {
	table *prepared
	id    int64
	made  map[rowParts]*rowUpdate
	// look reads the labels and the indexed columns.
	look *sqlite3.Stmt
}

func (p *prepared) updates(id int64, prepare func(sql string) *sqlite3.Stmt) rowUpdates {
	read := []string{"labels"}
	for _, i := range p.finding {
		read = append(read, quote(p.Columns[i].Name))
	}
	look := fmt.Sprintf("SELECT %s FROM %s WHERE id=?1", strings.Join(read, ", "), quote(rowsTable(id)))
	return rowUpdates{table: p, id: id, made: map[rowParts]*rowUpdate{}, look: prepare(look)}
}

// changed compares a row with the stored one.
func (u *rowUpdates) changed(id int64, row *Row) (parts rowParts, err error) {
	parts = allParts
	err = run(u.look, func(was *sqlite3.Stmt) error {
		parts = 0
		if string(was.ColumnRawText(0)) != string(row.labelsJSON()) {
			parts |= labelsPart
		}
		for n, i := range u.table.finding {
			if stored(was, n+1) != plainValue(row.Values[i]) {
				parts |= part(n)
			}
		}
		return nil
	}, id)
	return parts, err
}

// of returns the statement for what has changed.
func (u *rowUpdates) of(conn *sqlite3.Conn, parts rowParts) (*rowUpdate, error) {
	if _, known := u.made[parts]; !known && len(u.made) >= mostUpdates {
		parts = allParts
	}
	if made, known := u.made[parts]; known {
		return made, nil
	}
	made, set := &rowUpdate{labels: parts&labelsPart != 0}, []string{"tarn_sum=?2"}
	if made.labels {
		set = append(set, "labels=?3")
	}
	add := func(i int) {
		made.columns = append(made.columns, i)
		set = append(set, fmt.Sprintf("%s=?%d", quote(u.table.Columns[i].Name), len(set)+2))
	}
	for _, i := range u.table.others {
		add(i)
	}
	for n, i := range u.table.finding {
		if parts&part(n) != 0 {
			add(i)
		}
	}
	sql := fmt.Sprintf("UPDATE %s SET %s WHERE id=?1", quote(rowsTable(u.id)), strings.Join(set, ", "))
	stmt, _, err := conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	made.stmt = stmt
	u.made[parts] = made
	return made, nil
}

// run updates a row.
func (u *rowUpdate) run(id int64, sum Sum, row *Row) error {
	args := append(make([]any, 0, 3+len(u.columns)), id, sum)
	if u.labels {
		args = append(args, row.labelsJSON())
	}
	for _, i := range u.columns {
		args = append(args, row.Values[i])
	}
	return run(u.stmt, noRow, args...)
}

func (u *rowUpdates) all() []*sqlite3.Stmt {
	all := []*sqlite3.Stmt{u.look}
	for _, made := range u.made {
		all = append(all, made.stmt)
	}
	return all
}
