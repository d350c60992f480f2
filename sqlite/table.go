package sqlite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Table is how SQL sees a collection: under the collection's name, with the columns
// id, key, labels (as JSON) and those given here; and beside it, with _labels behind
// its name, each label as a row of id, name and value.
type Table struct {
	Columns []Column
	// Indexes are the columns, one or more each, by which rows are to be found
	// quickly. Labels are in any case.
	Indexes [][]string
}

// Column is one column of a [Table].
type Column struct {
	Name string
	// Type is TEXT, INTEGER, REAL or JSON, which is text too.
	Type string
	// Wide says that values are long. They are kept apart, so that whoever looks
	// through all rows without asking for them reads little, and a value that did
	// not change is not written again.
	Wide bool
	// Shared, for wide columns, says that many rows have the same value but for a
	// few words: one of the value is kept for all of them.
	Shared bool
	// Fill, for other wide columns, names the column whose text belongs where values
	// have a [Hole], so that they need not be written again when only that changes.
	Fill string
	// Expr, if it is set, is SQL that gives the column's values, in which {name}
	// stands for another column. Nothing is stored, and a Row has no value for it.
	Expr string
}

// filled is SQL that gives a wide value.
func (c Column) filled() string {
	if c.Fill == "" {
		return "w.value"
	}
	return fmt.Sprintf("replace(w.value, char(%d), coalesce(r.%s, ''))", Hole[0], quote(c.Fill))
}

// apart says that the column is not among the others.
func (c Column) apart() bool { return c.Wide || c.Expr != "" }

// Row is an object as SQL sees it.
type Row struct {
	// Values are those of the table's columns: string, int64, float64, bool, [JSON]
	// or nil; of wide ones each a [WideValue].
	Values []any
	Labels map[string]string
}

// JSON is the text of a JSON value in a column.
type JSON []byte

// Hole stands in a value for what another column has. It is a control character, of
// which JSON has none but in an escape.
const Hole = "\x01"

// WideValue is a value that is only made if it is not the one which is stored.
type WideValue struct {
	// Sum tells values apart: the first bytes of a hash that nobody can find equal
	// ones for.
	Sum [16]byte
	// Make gives the value; nil, or an error, makes it NULL.
	Make func() (JSON, error)
	// Words are those, [MaxWords] at most, by which the value may differ from that of
	// other rows, if the column is shared: the row's name, say.
	Words []string
}

func (t Table) validate(name string) error {
	known := map[string]bool{"id": true, "key": true, "labels": true, "tarn_sum": true}
	for i, c := range t.Columns {
		lower := strings.ToLower(c.Name)
		switch {
		case !plainWord(c.Name):
			return fmt.Errorf("sqlite: %s: %q cannot be the name of a column", name, c.Name)
		case known[lower]:
			return fmt.Errorf("sqlite: %s: the column %q is there twice", name, c.Name)
		case c.Shared && !c.Wide:
			return fmt.Errorf("sqlite: %s: the column %s is shared and not wide", name, c.Name)
		case c.Fill != "" && (!c.Wide || c.Shared || !t.plain(c.Fill)):
			return fmt.Errorf("sqlite: %s: the column %s is to be filled from %q: it must be wide and not shared, and that a column which is neither wide nor computed", name, c.Name, c.Fill)
		case c.Type != "TEXT" && c.Type != "INTEGER" && c.Type != "REAL" && c.Type != "JSON":
			return fmt.Errorf("sqlite: %s: the column %s has the type %q; there are TEXT, INTEGER, REAL and JSON", name, c.Name, c.Type)
		}
		known[lower] = true
		if c.Expr == "" && i > 0 && t.Columns[i-1].Expr != "" {
			return fmt.Errorf("sqlite: %s: the column %s has values and stands behind one that is computed; those come last", name, c.Name)
		}
	}
	for _, index := range t.Indexes {
		for _, column := range index {
			if !t.plain(column) {
				return fmt.Errorf("sqlite: %s: an index is to be on %q, which is no column, or a wide one", name, column)
			}
		}
	}
	return nil
}

// plain says whether there is a column that is among the others.
func (t Table) plain(column string) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, column) && !c.apart() })
}

func labelsView(name string) string { return name + "_labels" }
func labelsTable(id int64) string   { return fmt.Sprintf("tarn_labels_%d", id) }
func rowsTable(id int64) string     { return fmt.Sprintf("tarn_rows_%d", id) }

func wideTable(id int64, column string) string { return fmt.Sprintf("tarn_wide_%d_%s", id, column) }

func quote(name string) string { return sqlite3.QuoteIdentifier(name) }

// ddl are the statements that make the tables, and the views of them that have the
// collection's name: what is being filled is in the tables, and not to be seen. The
// first view's wide columns are subqueries: unlike a join, they cost nothing where
// they are not asked for, wherever the view stands in a query.
//
// Every row has a checksum, tarn_sum, that binds it to its object; see [Check].
//
// STRICT tables would say more, but tools of before 2022 cannot read them, and
// JSON is no type of theirs.
func (t Table) ddl(name string, id int64) []string {
	near, view := []string{"id INTEGER PRIMARY KEY", "key TEXT NOT NULL", "labels JSON"}, []string{"id", "key", "labels"}
	var all, columns []string
	for _, c := range t.Columns {
		sql := "r." + quote(c.Name)
		switch {
		case c.Expr != "":
			sql = "(" + strings.NewReplacer(columns...).Replace(c.Expr) + ")"
		case c.Shared:
			all = append(all, sharedTables(id, c)...)
			sql = sharedValue(id, c.Name)
		case c.Wide:
			wide := quote(wideTable(id, c.Name))
			all = append(all, fmt.Sprintf("CREATE TABLE %s (id INTEGER PRIMARY KEY, value TEXT, tarn_sum BLOB NOT NULL)", wide))
			sql = fmt.Sprintf("(SELECT %s FROM %s w WHERE w.id = r.id)", c.filled(), wide)
		default:
			near = append(near, quote(c.Name)+" "+c.Type)
		}
		columns = append(columns, "{"+c.Name+"}", sql)
		view = append(view, sql+" AS "+quote(c.Name))
	}
	near = append(near, "tarn_sum BLOB NOT NULL")
	labels := quote(labelsTable(id))
	all = append(all,
		fmt.Sprintf("CREATE TABLE %s (%s)", quote(rowsTable(id)), strings.Join(near, ", ")),
		fmt.Sprintf("CREATE VIEW %s AS SELECT %s FROM %s r WHERE %s", quote(name), strings.Join(view, ", "), quote(rowsTable(id)), shownIf(id)),
		fmt.Sprintf("CREATE TABLE %s (id INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (id, name)) WITHOUT ROWID", labels),
		fmt.Sprintf("CREATE INDEX %s ON %s (name, value, id)", quote(labelsView(name)+"_by_name_value"), labels),
		fmt.Sprintf("CREATE VIEW %s AS SELECT id, name, value FROM %s WHERE %s", quote(labelsView(name)), labels, shownIf(id)),
	)
	for _, index := range t.Indexes {
		columns := make([]string, len(index))
		for i, c := range index {
			columns[i] = quote(c)
		}
		all = append(all, fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quote(name+"_by_"+strings.Join(index, "_")), quote(rowsTable(id)), strings.Join(columns, ", ")))
	}
	return all
}

// storing are the tables that ddl makes, for what is stored.
func (t Table) storing(id int64) []string {
	all := []string{labelsTable(id), rowsTable(id)}
	for _, c := range t.Columns {
		if c.Wide {
			all = append(all, wideTable(id, c.Name))
		}
		if c.Shared {
			all = append(all, valuesTable(id, c.Name))
		}
	}
	return all
}

// The statements have the id as ?1, the key as ?2, the labels as ?3, the checksum as
// ?4 and the columns from ?5 on.
func (t Table) insert(id int64) string {
	columns, values := []string{"id", "key", "labels", "tarn_sum"}, []string{"?1", "?2", "?3", "?4"}
	for i, c := range t.Columns {
		if !c.apart() {
			columns, values = append(columns, quote(c.Name)), append(values, fmt.Sprintf("?%d", i+5))
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(rowsTable(id)), strings.Join(columns, ", "), strings.Join(values, ", "))
}

func (t Table) update(id int64) string {
	set := []string{"key=?2", "labels=?3", "tarn_sum=?4"}
	for i, c := range t.Columns {
		if !c.apart() {
			set = append(set, fmt.Sprintf("%s=?%d", quote(c.Name), i+5))
		}
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE id=?1", quote(rowsTable(id)), strings.Join(set, ", "))
}

// touch sets the checksum, ?2, and only the columns that no index is on, from ?3 on:
// SQLite writes an index anew whenever one of its columns is set, the same value or
// not, and most updates of an object change nothing that it is found by.
func (p *prepared) touch(id int64) string {
	set := []string{"tarn_sum=?2"}
	for n, i := range p.touching {
		set = append(set, fmt.Sprintf("%s=?%d", quote(p.Columns[i].Name), n+3))
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE id=?1", quote(rowsTable(id)), strings.Join(set, ", "))
}

func (t Table) label(id int64) string {
	return fmt.Sprintf("INSERT INTO %s (id, name, value) VALUES (?1, ?2, ?3)", quote(labelsTable(id)))
}

func removeFrom(table string) string { return fmt.Sprintf("DELETE FROM %s WHERE id=?1", quote(table)) }

func (t Table) indexed(column string) bool {
	return slices.ContainsFunc(t.Indexes, func(index []string) bool {
		return slices.ContainsFunc(index, func(c string) bool { return strings.EqualFold(c, column) })
	})
}

// prepared is a table with what is needed for each row.
type prepared struct {
	Table
	// finding are the columns that an index is on, touching those that a row has
	// beside them, wide the wide ones.
	finding, touching, wide []int
	// values is how many a row has: those of the columns up to the first that is
	// computed.
	values int
}

func prepareTable(t Table) *prepared {
	p := &prepared{Table: t}
	for i, c := range t.Columns {
		switch {
		case t.indexed(c.Name):
			p.finding = append(p.finding, i)
		case c.Wide:
			p.wide = append(p.wide, i)
		case c.Expr == "":
			p.touching = append(p.touching, i)
		}
		if c.Expr == "" {
			p.values = i + 1
		}
	}
	return p
}

// check says whether a row has what the table needs, and gives the sums of its
// wide values.
func (p *prepared) check(r Row) (parts []byte, err error) {
	if len(r.Values) != p.values {
		return nil, fmt.Errorf("a row of %d values for %d columns", len(r.Values), p.values)
	}
	for _, i := range p.wide {
		part, ok := r.Values[i].(WideValue)
		if !ok {
			return nil, fmt.Errorf("the column %s is wide and has a %T; make it a Part", p.Columns[i].Name, r.Values[i])
		}
		parts = append(parts, part.Sum[:]...)
	}
	return parts, nil
}

// found is a checksum of all that a row can be found by: while it is the same,
// neither indexes nor labels need be written. It has 64 bits, of which whoever may
// write objects finds two equal ones in minutes, unless there is a key.
func (p *prepared) found(sums *summer, r Row) int64 {
	return int64(sums.sum(func(h *sumHash) {
		h.text("found")
		for _, i := range p.finding {
			switch v := r.Values[i].(type) {
			case string:
				h.text("text")
				h.text(v)
			case nil:
				h.text("null")
			default:
				h.text("value")
				h.text(fmt.Sprint(v))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
			h.text(name)
			h.text(r.Labels[name])
		}
	}).number())
}

func labelsJSON(labels map[string]string) JSON {
	if len(labels) == 0 {
		return JSON("{}")
	}
	raw, _ := json.Marshal(labels) // strings can be written, and sorted by name
	return raw
}
