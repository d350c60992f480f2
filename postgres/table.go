package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tarnproject/tarn/kube/columns"
)

// column is a column of a table.
type column struct {
	Name string `json:"name"`
	// Type as Postgres writes it.
	Type string `json:"type"`
	// index says that it has an index of its own.
	index bool
}

// table is a table that Tarn makes, with its columns in order.
type table struct {
	name string
	// of is what it has, such as gears.example.org; empty if that is not known.
	of      string
	columns []column
}

// The columns that a table has beside those of its resource. History tables have all of
// them, and those of a resource the first two and the last two.
var (
	identity   = []column{{Name: "cluster", Type: text}, {Name: "key", Type: text}}
	content    = []column{{Name: "labels", Type: jsonb}, {Name: "object", Type: jsonb}}
	occurrence = []column{
		{Name: "seq", Type: bigint}, {Name: "operation", Type: text}, {Name: "version", Type: text}, {Name: "epoch", Type: text},
		{Name: "inferred", Type: boolean}, {Name: "rewound", Type: boolean}, {Name: "heard", Type: timestamptz}, {Name: "problem", Type: text},
	}
)

// order are the columns that only the temporary table has: the place of a change in its
// batch, and whether it is the first and the last of its key.
var order = []column{{Name: "tarn_ord", Type: bigint}, {Name: "tarn_first", Type: boolean}, {Name: "tarn_last", Type: boolean}}

// system are the columns that Postgres gives to each table.
var system = []column{{Name: "cmax"}, {Name: "cmin"}, {Name: "ctid"}, {Name: "tableoid"}, {Name: "xmax"}, {Name: "xmin"}}

const (
	text        = "text"
	bigint      = "bigint"
	double      = "double precision"
	jsonb       = "jsonb"
	boolean     = "boolean"
	timestamptz = "timestamp with time zone"
)

// typeOf is the type of a column in Postgres. A flag is a number, 0 or 1, as in SQLite, so
// that the same statements hold in both.
func typeOf(kind string) string {
	switch kind {
	case "INTEGER":
		return bigint
	case "REAL":
		return double
	case "JSON":
		return jsonb
	}
	return text
}

// longestName is the longest name of a table or column in Postgres, historySuffix what the
// history of a table is named by.
const (
	longestName   = 63
	historySuffix = "_history"
)

// short is a name of at most so many bytes. A longer one ends in a checksum of itself.
func short(name string, most int) string {
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:most-9] + "_" + hex.EncodeToString(sum[:4])
}

// resourceTable is the table of a resource with columns of its own. A column whose name is
// taken gets an underscore behind it.
func resourceTable(name string, own []columns.Column) table {
	t := table{name: short(name, longestName-len(historySuffix))}
	t.columns = slices.Concat(identity, content)
	taken := slices.Concat(identity, occurrence, content, order, system)
	for _, c := range own {
		column := column{Name: short(c.Name, longestName), Type: typeOf(c.Type), index: c.Index}
		for slices.ContainsFunc(taken, column.sameName) {
			column.Name = short(column.Name+"_", longestName)
		}
		taken = append(taken, column)
		t.columns = slices.Insert(t.columns, len(t.columns)-len(content), column)
	}
	return t
}

func (c column) sameName(other column) bool { return c.Name == other.Name }

// own are the columns that belong to the resource.
func (t table) own() []column { return t.columns[len(identity) : len(t.columns)-len(content)] }

// history is the table with every state of another one.
func (t table) history() table {
	h := table{name: t.name + historySuffix, columns: slices.Concat(identity, occurrence, t.own(), content)}
	if t.of != "" {
		h.of = "the history of " + t.of
	}
	return h
}

// staged is the temporary table through which changes of another one go. Its name has a
// checksum of its columns: a session may have one of other columns.
func (t table) staged() table {
	st := table{columns: slices.Concat(order, identity[1:], occurrence[1:], t.own(), content)}
	sum := sha256.Sum256(fmt.Append(nil, t.name, st.columns))
	st.name = short("tarn_stage_"+t.name, longestName-17) + "_" + hex.EncodeToString(sum[:8])
	return st
}

// createStaged makes a temporary table that is empty in each transaction.
func (t table) createStaged() string {
	var parts []string
	for _, c := range t.columns {
		parts = append(parts, c.definition())
	}
	return fmt.Sprintf("CREATE TEMPORARY TABLE IF NOT EXISTS %s (%s) ON COMMIT DELETE ROWS", t.quoted(), strings.Join(parts, ", "))
}

// quoted is the name for a statement.
func (t table) quoted() string { return quote(t.name) }

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// names are the columns for a statement, each behind a prefix such as "t.".
func names(columns []column, prefix string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = prefix + quote(c.Name)
	}
	return strings.Join(all, ", ")
}

// definition is a column in a CREATE TABLE.
func (c column) definition() string { return quote(c.Name) + " " + c.Type }

// keys are the columns of the primary key, and those that may not be NULL.
func (t table) keys() (key, required []string) {
	if slices.ContainsFunc(t.columns, occurrence[0].sameName) { // a history
		return []string{"seq"}, []string{"seq", "cluster", "key", "operation", "heard"}
	}
	return []string{"cluster", "key"}, []string{"cluster", "key"}
}

// create are the statements that make a resource's table.
func (t table) create() []string {
	var parts []string
	for _, c := range t.columns {
		definition := c.definition()
		if slices.ContainsFunc(identity, c.sameName) {
			definition += " NOT NULL"
		}
		parts = append(parts, definition)
	}
	all := []string{fmt.Sprintf("CREATE TABLE %s (%s, PRIMARY KEY (cluster, key))", t.quoted(), strings.Join(parts, ", "))}
	all = append(all, t.createIndex("USING gin (labels jsonb_path_ops)"))
	for _, together := range [][]string{{"namespace", "name"}, {"uid"}, {"owner_uid"}} {
		if slices.ContainsFunc(t.columns, column{Name: together[0]}.sameName) {
			all = append(all, t.createIndex("("+strings.Join(together, ", ")+")"))
		}
	}
	for _, c := range t.own() {
		if c.index {
			all = append(all, t.createIndex("("+quote(c.Name)+")"))
		}
	}
	return all
}

// createHistory are the statements that make the history of a table; t is that history.
func (t table) createHistory() []string {
	var parts []string
	for _, c := range t.columns {
		definition := c.definition()
		switch {
		case c.Name == "seq":
			definition += " GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
		case slices.ContainsFunc(identity, c.sameName) || c.Name == "operation" || c.Name == "heard":
			definition += " NOT NULL"
		}
		parts = append(parts, definition)
	}
	return []string{
		fmt.Sprintf("CREATE TABLE %s (%s)", t.quoted(), strings.Join(parts, ", ")),
		t.createIndex("(cluster, key, seq)"),
		t.createIndex("(heard)"),
	}
}

// createIndex leaves the name to the server, which finds one that is free: a table that
// somebody has renamed keeps its indexes, with their names.
func (t table) createIndex(on string) string {
	return fmt.Sprintf("CREATE INDEX ON %s %s", t.quoted(), on)
}
