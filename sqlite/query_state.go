package sqlite

import (
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// TableState is the state of a collection that a statement read. It is from the same
// snapshot as the rows.
type TableState struct {
	// Name is that of the collection.
	Name    string
	Version tarn.Version
	// LastContact is the time of the last contact with the source before that state was
	// written.
	LastContact time.Time
	// Synced says that there is a state. Until the first one is completely on disk, the
	// table shows no rows.
	Synced bool
	// Complete says that the table has everything that belongs to the version. It is
	// false before the first state, and where an object could not be read or written.
	Complete bool
}

// pinSnapshot begins a transaction in which all statements see the same state of the
// file. It reads once, which fixes that state.
func pinSnapshot(conn *sqlite3.Conn) error {
	if err := conn.Exec("BEGIN"); err != nil {
		return err
	}
	return execute(conn, "SELECT 1 FROM sqlite_schema LIMIT 1")
}

// readTableStates reads the states of collections by their ids. It does not verify
// checksums, as queries do not either; so it needs no key.
func readTableStates(conn *sqlite3.Conn, ids map[int64]bool) (states []TableState, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = query(conn, "SELECT id, name, version, heard_ms, whole FROM tarn_collections ORDER BY name", func(row *sqlite3.Stmt) error {
		if !ids[row.ColumnInt64(0)] {
			return nil
		}
		version, whole := tarn.Version(row.ColumnText(2)), row.ColumnInt64(4)
		states = append(states, TableState{
			Name: row.ColumnText(1), Version: version, LastContact: time.UnixMilli(row.ColumnInt64(3)),
			Synced: version != "" || whole != notWhole, Complete: whole == wholeAndComplete,
		})
		return nil
	})
	return states, err
}

// presentTables and pastTables begin the names of the tables of a collection: those of its
// content, and those of its log.
var (
	presentTables = []string{"tarn_rows_", "tarn_labels_", "tarn_wide_", "tarn_list_", "tarn_objects_"}
	pastTables    = []string{"tarn_lives_", "tarn_states_", "tarn_bases_", "tarn_columns_", "tarn_clustered_", "tarn_moments_"}
)

// collectionOf is the id of the collection that one of our tables belongs to.
func collectionOf(table string) (id int64, ok bool) {
	for _, prefix := range append(presentTables, pastTables...) {
		if rest, found := strings.CutPrefix(table, prefix); found {
			number, _, _ := strings.Cut(rest, "_")
			id, err := strconv.ParseInt(number, 10, 64)
			return id, err == nil
		}
	}
	return 0, false
}
