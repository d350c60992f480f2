package sqlite

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// List shows the texts of a JSON column as rows: the view *table*_*column* has a row of id,
// text and another column's value for each text. For a pod with two containers, the column
// images has two rows.
//
// The rows are stored, ordered by text and value. So a question such as "on how many nodes
// is each image" reads them in their order. json_each finds the same rows, but they have to
// be sorted then, which takes most of the time: 1.1 s of CPU for 100,000 pods, and 0.2 s
// with the rows (bench/fleet).
//
// Invariant: the rows are those that fill computes from the main table. They have no
// checksums: [Check] compares them, and [Repair] computes them again.
type List struct {
	// Column is the JSON column, an array of texts, and Element the name of a text in the
	// view.
	Column, Element string
	// Beside is the column of type TEXT whose value each row repeats.
	Beside string
}

func listTable(id int64, column string) string { return fmt.Sprintf("tarn_list_%d_%s", id, column) }

// tables are the statements that make the table and its view. NULL cannot be in a key, and
// is stored as an empty text.
func (l List) tables(name string, id int64) []string {
	table, element, beside := quote(listTable(id, l.Column)), quote(l.Element), quote(l.Beside)
	return []string{
		fmt.Sprintf("CREATE TABLE %s (%s TEXT NOT NULL, %s TEXT NOT NULL, id INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (%[2]s, %[3]s, id, n)) WITHOUT ROWID", table, element, beside),
		fmt.Sprintf("CREATE VIEW %s AS SELECT id, %s, nullif(%s, '') AS %[3]s FROM %s WHERE %s", quote(l.view(name)), element, beside, table, shownIf(id)),
	}
}

// removal is the statement that removes the list that an earlier Tarn left. That version
// knows no lists, and dropped the collection without this one.
func (l List) removal(name string, id int64) string {
	return fmt.Sprintf("DROP VIEW IF EXISTS %s; DROP TABLE IF EXISTS %s", quote(l.view(name)), quote(listTable(id, l.Column)))
}

func (l List) view(name string) string { return name + "_" + l.Column }

// rows is the query for the rows that belong to the main table.
func (l List) rows(id int64) string {
	column := "r." + quote(l.Column)
	return fmt.Sprintf("SELECT j.value, coalesce(r.%s, ''), r.id, j.key FROM %s r, json_each(CASE WHEN json_valid(%s) AND json_type(%[3]s) = 'array' THEN %[3]s ELSE '[]' END) j WHERE j.type = 'text'",
		quote(l.Beside), quote(rowsTable(id)), column)
}

// fill is the statement that writes the rows of all objects to an empty table.
func (l List) fill(id int64) string {
	return fmt.Sprintf("INSERT INTO %s %s", quote(listTable(id, l.Column)), l.rows(id))
}

// differing is the query for the number of rows that are wrong.
func (l List) differing(id int64) string {
	stored := fmt.Sprintf("SELECT %s, %s, id, n FROM %s", quote(l.Element), quote(l.Beside), quote(listTable(id, l.Column)))
	return fmt.Sprintf("SELECT (SELECT count(*) FROM (%s EXCEPT %s)) + (SELECT count(*) FROM (%[2]s EXCEPT %[1]s))", stored, l.rows(id))
}

// listOf reads the list that a statement of ours makes.
func listOf(id int64, sql string) (l List, ok bool) {
	kind, name := madeBy(sql)
	column, ok := strings.CutPrefix(name, listTable(id, ""))
	names := strings.Split(sql, `"`)
	if kind != "TABLE" || !ok || len(names) < 6 {
		return l, false
	}
	return List{Column: column, Element: names[3], Beside: names[5]}, true
}

// listStmts write the rows of a list.
type listStmts struct {
	column, beside int
	// parts are the parts of both columns.
	parts rowParts
	// look reads both columns of a row.
	look, add, remove *sqlite3.Stmt
}

func (p *prepared) listStmts(id int64, l List, prepare func(sql string) *sqlite3.Stmt) listStmts {
	table, element, beside := quote(listTable(id, l.Column)), quote(l.Element), quote(l.Beside)
	return listStmts{
		column: p.place(l.Column), beside: p.place(l.Beside), parts: p.part(l.Column) | p.part(l.Beside),
		look:   prepare(fmt.Sprintf("SELECT %s, coalesce(%s, '') FROM %s WHERE id=?1", quote(l.Column), beside, quote(rowsTable(id)))),
		add:    prepare(fmt.Sprintf("INSERT INTO %s (%s, %s, id, n) VALUES (?1, ?2, ?3, ?4)", table, element, beside)),
		remove: prepare(fmt.Sprintf("DELETE FROM %s WHERE %s=?1 AND %s=?2 AND id=?3", table, element, beside)),
	}
}

// place is that of a column.
func (p *prepared) place(column string) int {
	for i, c := range p.Columns {
		if strings.EqualFold(c.Name, column) {
			return i
		}
	}
	return -1
}

func (s *listStmts) all() []*sqlite3.Stmt { return []*sqlite3.Stmt{s.look, s.add, s.remove} }

// write updates the rows of an object to match the next values of its main row, before that
// row is written. next is nil if the object is gone.
func (s *listStmts) write(how rowChange, id int64, next []any) error {
	var texts, beside any
	if how != rowGone {
		texts, beside = plainValue(next[s.column]), plainValue(next[s.beside])
	}
	if beside == nil {
		beside = ""
	}
	if how != rowAdded {
		var before, was any
		err := run(s.look, func(row *sqlite3.Stmt) error {
			before, was = stored(row, 0), stored(row, 1)
			return nil
		}, id)
		if err != nil || how != rowGone && before == texts && was == beside {
			return err
		}
		for _, text := range textsOf(before) {
			if err := run(s.remove, noRow, text, was, id); err != nil {
				return err
			}
		}
	}
	for n, text := range textsOf(texts) {
		if err := run(s.add, noRow, text, beside, id, n); err != nil {
			return err
		}
	}
	return nil
}

// textsOf are the texts of a JSON array by their places. Other elements, and anything else
// than an array, have none.
func textsOf(value any) map[int]string {
	raw, _ := value.(string)
	var all []any
	if json.Unmarshal([]byte(raw), &all) != nil {
		return nil
	}
	texts := make(map[int]string, len(all))
	for i, v := range all {
		if text, ok := v.(string); ok {
			texts[i] = text
		}
	}
	return texts
}

// plainValue is a value as SQLite returns it.
func plainValue(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case int:
		return int64(v)
	case JSON:
		return string(v)
	case Text:
		return string(v)
	case []byte:
		return string(v) // no column has bytes
	case float64:
		if math.IsNaN(v) {
			return nil
		}
	}
	return v
}
