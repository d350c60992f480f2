package sqlite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Table is the form of a collection in SQL: a view with the collection's name, with the
// columns id, key, labels (as JSON) and those given here; and a view with the suffix
// _labels, with a row of id, name and value for each label.
type Table struct {
	Columns []Column
	// Indexes lists indexes of one or more columns each, which may be the key. Labels are
	// always indexed.
	Indexes [][]string
	// Lists are the columns whose elements are shown as rows too.
	Lists []List
}

// Column is one column of a [Table].
type Column struct {
	Name string
	// Type is TEXT, INTEGER, REAL or JSON, which is text too.
	Type string
	// Wide says that values are long. They are in a separate table, so that a scan of
	// the other columns reads little, and an unchanged value is not written again.
	Wide bool
	// Shared, for wide columns, says that many rows have the same value but for a few
	// words: the value is stored once for all of them.
	Shared bool
	// Fill, for other wide columns, names the column whose text replaces each [Hole] of
	// a value, so that the value is not written again when only that text changes.
	Fill string
	// Expr, if set, is SQL that computes the column's values, in which {name} means
	// another column, and {key} the key. Nothing is stored, and a Row has no value for it.
	Expr string
	// Version says that the values are the versions of the states, so that a history
	// need not keep them apart.
	Version bool
}

// filled is the SQL expression of a wide value.
func (c Column) filled() string {
	if c.Fill == "" {
		return "w.value"
	}
	return fmt.Sprintf("replace(w.value, char(%d), coalesce(r.%s, ''))", Hole[0], quote(c.Fill))
}

// apart reports whether the column is not in the main table.
func (c Column) apart() bool { return c.Wide || c.Expr != "" }

// Row is an object in SQL.
type Row struct {
	// Values holds a value for each column: string, int64, float64, bool, [JSON] or nil;
	// for wide columns a [WideValue].
	Values []any
	Labels map[string]string

	// shownLabels are the labels as JSON, once they were needed.
	shownLabels JSON
}

// JSON is the text of a JSON value in a column.
type JSON []byte

// Hole marks the place of another column's text in a value. It is a control character,
// which JSON has only in escapes.
const Hole = "\x01"

// WideValue is a value that is only computed if it differs from the stored one.
type WideValue struct {
	// Sum identifies the value: the first bytes of a collision-resistant hash.
	Sum [16]byte
	// Make returns the value; nil, or an error, makes it NULL.
	Make func() (JSON, error)
	// Words holds the words, at most [MaxWords], in which the value of a shared column
	// may differ from that of other rows, such as the row's name.
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
			return fmt.Errorf("sqlite: %s: the column %s has Fill %q: the column must be wide and not shared, and %[3]q must be a column that is neither wide nor computed", name, c.Name, c.Fill)
		case c.Type != "TEXT" && c.Type != "INTEGER" && c.Type != "REAL" && c.Type != "JSON":
			return fmt.Errorf("sqlite: %s: the column %s has the type %q; there are TEXT, INTEGER, REAL and JSON", name, c.Name, c.Type)
		}
		known[lower] = true
		if c.Expr == "" && i > 0 && t.Columns[i-1].Expr != "" {
			return fmt.Errorf("sqlite: %s: the column %s has values and follows a computed one; put computed columns last", name, c.Name)
		}
	}
	for _, index := range t.Indexes {
		for _, column := range index {
			if !t.plain(column) && column != "key" {
				return fmt.Errorf("sqlite: %s: an index names %q, which is not a column, or is a wide one", name, column)
			}
		}
	}
	for _, l := range t.Lists {
		if !t.plain(l.Column) || !t.plain(l.Beside) || !plainWord(l.Element) || strings.EqualFold(l.Element, l.Beside) {
			return fmt.Errorf("sqlite: %s: the list of %q beside %q needs two columns that are neither wide nor computed, and another name for an element than %q", name, l.Column, l.Beside, l.Element)
		}
	}
	return nil
}

// plain reports whether there is a column of this name in the main table.
func (t Table) plain(column string) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, column) && !c.apart() })
}

func labelsView(name string) string { return name + "_labels" }
func labelsTable(id int64) string   { return fmt.Sprintf("tarn_labels_%d", id) }
func rowsTable(id int64) string     { return fmt.Sprintf("tarn_rows_%d", id) }

func wideTable(id int64, column string) string { return fmt.Sprintf("tarn_wide_%d_%s", id, column) }

func quote(name string) string { return sqlite3.QuoteIdentifier(name) }

// ddl returns the statements that make the tables, and the views with the collection's
// name: the views hide a state that is being filled. The wide columns of the first view
// are subqueries: unlike a join, they cost nothing in a query that does not use them.
//
// Every row has a checksum, tarn_sum, that binds it to its object; see [Check].
//
// STRICT tables would check types, but tools from before 2022 cannot read them, and they
// have no JSON type.
func (t Table) ddl(name string, id int64) []string {
	near, view := []string{"id INTEGER PRIMARY KEY", "key TEXT NOT NULL", "labels JSON"}, []string{"id", "key", "labels"}
	var all []string
	columns := []string{"{key}", "r.key"}
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
	for _, l := range t.Lists {
		all = append(all, l.tables(name, id)...)
	}
	for _, index := range t.Indexes {
		columns := make([]string, len(index))
		for i, c := range index {
			columns[i] = quote(c)
		}
		all = append(all, fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quote(name+"_by_"+strings.Join(index, "_")), quote(rowsTable(id)), strings.Join(columns, ", ")))
	}
	return all
}

// storing lists the tables that ddl makes.
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
	for _, l := range t.Lists {
		all = append(all, listTable(id, l.Column))
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

func (t Table) label(id int64) string {
	return fmt.Sprintf("INSERT INTO %s (id, name, value) VALUES (?1, ?2, ?3)", quote(labelsTable(id)))
}

func removeFrom(table string) string { return fmt.Sprintf("DELETE FROM %s WHERE id=?1", quote(table)) }

// indexed reports whether a value is found by an index or a list, which have to be written
// when it changes.
func (t Table) indexed(column string) bool {
	if slices.ContainsFunc(t.Lists, func(l List) bool { return strings.EqualFold(l.Column, column) || strings.EqualFold(l.Beside, column) }) {
		return true
	}
	return slices.ContainsFunc(t.Indexes, func(index []string) bool {
		return slices.ContainsFunc(index, func(c string) bool { return strings.EqualFold(c, column) })
	})
}

// prepared is a table with data for writing rows.
type prepared struct {
	Table
	// finding holds the indexed columns, wide the wide ones, and others the other columns
	// of a row.
	finding, wide, others []int
	// values is the number of values in a row: the columns before the first computed
	// one.
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
			p.others = append(p.others, i)
		}
		if c.Expr == "" {
			p.values = i + 1
		}
	}
	return p
}

// check checks that a row fits the table, and returns the sums of its wide values.
func (p *prepared) check(r Row) (parts []byte, err error) {
	if len(r.Values) != p.values {
		return nil, fmt.Errorf("a row of %d values for %d columns", len(r.Values), p.values)
	}
	for _, i := range p.wide {
		part, ok := r.Values[i].(WideValue)
		if !ok {
			return nil, fmt.Errorf("the column %s is wide and has a %T; make it a WideValue", p.Columns[i].Name, r.Values[i])
		}
		parts = append(parts, part.Sum[:]...)
	}
	return parts, nil
}

// found is a checksum of all indexed values: while it is the same, neither indexes nor
// labels need to be written. It has 64 bits: without a key, a user who may write objects
// finds a collision in minutes.
func (p *prepared) found(sums *summer, r Row) int64 {
	return int64(sums.sum(func(h *sumHash) {
		h.text("found")
		for _, i := range p.finding {
			switch v := r.Values[i].(type) {
			case string:
				h.text("text")
				h.text(v)
			case JSON:
				h.text("json")
				h.bytes(v)
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

// labelsJSON are the labels as JSON. The content and the history need them.
func (r *Row) labelsJSON() JSON {
	switch {
	case r.shownLabels != nil:
	case len(r.Labels) == 0:
		r.shownLabels = JSON("{}")
	default:
		r.shownLabels, _ = json.Marshal(r.Labels) // strings can be written, and sorted by name
	}
	return r.shownLabels
}
