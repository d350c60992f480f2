package sqlite

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// oldLogsDDL is tarn_logs of formats 5 to 9, in which lives were pruned in turn.
var oldLogsDDL = strings.NewReplacer("pruned INTEGER", "cursor INTEGER", "thinning INTEGER", "visited_ms INTEGER", "every_ms INTEGER", "round INTEGER").Replace(tables[3])

// clusteredTable has the states of formats 5 to 9, in the order of lives. It exists while
// states are left to move to tarn_states, and has those states. So the next process can
// continue after a kill.
func clusteredTable(id int64) string { return fmt.Sprintf("tarn_clustered_%d", id) }

// migrateLogRows converts the rows of tarn_logs to the present format: pruning begins again.
// A damaged row stays damaged.
func migrateLogRows(conn *sqlite3.Conn, keys *fileKeys) error {
	err := conn.Exec("ALTER TABLE tarn_logs RENAME COLUMN cursor TO pruned; ALTER TABLE tarn_logs RENAME COLUMN visited_ms TO thinning; ALTER TABLE tarn_logs RENAME COLUMN round TO every_ms")
	if err != nil {
		return err
	}
	owners := map[int64]string{}
	err = query(conn, "SELECT l.id, c.name FROM tarn_logs l JOIN tarn_collections c ON c.id=l.id", func(row *sqlite3.Stmt) error {
		owners[row.ColumnInt64(0)] = row.ColumnText(1)
		return nil
	})
	if err != nil {
		return err
	}
	for id, owner := range owners {
		state, _, err := readLog(conn, keys, id, owner)
		if damaged(err) {
			continue
		}
		state.pruned, state.thinning, state.everyMS = 0, 0, 0
		l := &logbook{c: &collection{Collection: Collection{Name: owner}, db: &DB{keys: keys}, id: id}}
		if err := first(err, l.writeState(conn, state)); err != nil {
			return err
		}
	}
	return nil
}

// beginMove puts the states of a log aside, and makes the table that they are moved to.
func beginMove(conn *sqlite3.Conn, id int64) error {
	states := statesTable(id)
	if n, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE type='table' AND name=?", states); err != nil || n == 0 {
		return first(err, fmt.Errorf("%w: %s is missing", errSchema, states))
	}
	err := conn.Exec("ALTER TABLE " + states + " RENAME TO " + clusteredTable(id))
	for _, sql := range historyDDL(id) {
		if _, name := madeBy(sql); err == nil && (name == states || strings.HasPrefix(name, states+"_")) {
			err = conn.Exec(sql)
		}
	}
	return err
}

// moveStates moves the states of all logs to the tables of the present format.
func (db *DB) moveStates(conn *sqlite3.Conn, p *progress) error {
	type log struct {
		id, states int64
		owner      string
	}
	var all []log
	err := query(conn, "SELECT l.id, l.states, coalesce(c.name, '') FROM tarn_logs l JOIN sqlite_schema s ON s.name='tarn_clustered_' || l.id LEFT JOIN tarn_collections c ON c.id=l.id", func(row *sqlite3.Stmt) error {
		all = append(all, log{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnText(2)})
		return nil
	})
	for _, l := range all {
		for done, more := int64(0), err == nil; more; {
			if more, err = moveSome(conn, l.id); err != nil {
				if !conn.GetAutocommit() {
					err = first(err, conn.Exec("ROLLBACK"))
				}
				return err
			}
			done += convertedAtOnce
			p.report(l.owner, min(done, l.states), l.states)
		}
	}
	return err
}

const movedColumns = "seq, life, version, heard_ms, until_ms, op, base, cols, sum, body"

// moveSome moves the states of some lives in one transaction. It reports whether there are
// more. It moves a life as a whole: the space that this frees is contiguous, so that the file
// does not need room for two copies.
func moveSome(conn *sqlite3.Conn, id int64) (more bool, err error) {
	if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	from, last := clusteredTable(id), int64(0)
	err = query(conn, "SELECT life FROM "+from+" ORDER BY life, seq LIMIT 1 OFFSET ?", func(row *sqlite3.Stmt) error {
		last, more = row.ColumnInt64(0), true
		return nil
	}, convertedAtOnce)
	if err != nil {
		return false, err
	}
	insert := fmt.Sprintf("INSERT OR IGNORE INTO %s (%s) SELECT %[2]s FROM %s", statesTable(id), movedColumns, from)
	if more {
		err = inTurn(execute(conn, insert+" WHERE life<=? ORDER BY seq", last), func() error { return execute(conn, "DELETE FROM "+from+" WHERE life<=?", last) })
	} else {
		err = inTurn(execute(conn, insert+" ORDER BY seq"), func() error { return conn.Exec("DROP TABLE " + from) })
	}
	return more, inTurn(err, func() error { return conn.Exec("COMMIT") })
}

// converting reports whether states of a log were not brought into the present format yet.
func converting(conn *sqlite3.Conn, id int64) (bool, error) {
	n, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name IN (?, ?)", oldColumnsTable(id), clusteredTable(id))
	return n > 0, err
}
