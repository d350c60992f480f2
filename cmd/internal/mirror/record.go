package mirror

import (
	"encoding/json"
	"fmt"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// RecordTable is where a directory records its tables: a table for SQL like the others.
const RecordTable = "api_resources"

// record is what a directory knows about a table, so that the table can be found by its names
// and started from, even if no server answers.
type record struct {
	Resource
	// Table is its name in SQL, Columns the columns that its definition adds.
	Table   string
	Columns []ondisk.Column `json:",omitempty"`

	// Server and the fields below identify the source of the copy.
	Server                       string
	Namespaces                   []string `json:",omitempty"`
	LabelSelector, FieldSelector string
	// Without are the fields that are left out, and Hidden says that the values of Secrets
	// are left out.
	Without []string `json:",omitempty"`
	Hidden  bool
	// Fleet says that it is a copy of several clusters, whose names begin the keys.
	Fleet bool `json:",omitempty"`
}

// records writes them.
type records struct{}

func (records) Schema() string { return "mirror records 1" }

func (records) Append(buf []byte, r record) ([]byte, error) {
	raw, err := json.Marshal(r)
	return append(buf, raw...), err
}

func (records) Decode(raw []byte) (r record, err error) { return r, json.Unmarshal(raw, &r) }

func (records) Table() sqlite.Table {
	return sqlite.Table{Columns: []sqlite.Column{
		{Name: "name", Type: "TEXT"}, {Name: "table_name", Type: "TEXT"}, {Name: "kind", Type: "TEXT"},
		{Name: "api_group", Type: "TEXT"}, {Name: "api_version", Type: "TEXT"}, {Name: "namespaced", Type: "INTEGER"},
		{Name: "short_names", Type: "JSON"}, {Name: "server", Type: "TEXT"},
	}}
}

func (records) Row(r record, _ []byte) (sqlite.Row, error) {
	short, err := json.Marshal(append([]string{}, r.ShortNames...))
	return sqlite.Row{Values: []any{
		r.Name(), r.Table, r.Kind, r.GVR.Group, r.GVR.Version, r.Namespaced, sqlite.JSON(short), r.Server,
	}}, err
}

// ledger is the records of a directory that is being written.
type ledger struct {
	store *sqlite.Store[record]
	// before are the records of the previous run.
	before map[string]record
	now    []tarn.Item[record]
}

func openLedger(db *sqlite.DB) (*ledger, error) {
	store, err := sqlite.NewStore(db, sqlite.Collection{Name: RecordTable, Identity: "what a mirror keeps"}, records{})
	if err != nil {
		return nil, err
	}
	l := &ledger{store: store, before: map[string]record{}}
	for key, r := range store.All() {
		l.before[string(key)] = r
	}
	return l, nil
}

func (l *ledger) add(r record) {
	l.now = append(l.now, tarn.Item[record]{Meta: tarn.Meta{Key: tarn.Key(r.Name())}, Object: r})
}

// write replaces the records, and removes the tables that are no longer kept.
func (l *ledger) write(db *sqlite.DB) error {
	if err := l.store.Replace(l.now, tarn.At("1")); err != nil {
		return fmt.Errorf("mirror: %s cannot be written: %w", db.Dir(), err)
	}
	_, err := db.Forget()
	return err
}
