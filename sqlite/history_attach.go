package sqlite

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// attachLog finds the log of a collection, makes one, or removes one that is not wanted
// any more. It reports whether the log is new.
func (c *collection) attachLog(conn *sqlite3.Conn) (fresh bool, err error) {
	c.log = nil
	before, found, err := readLog(conn, c.db.keys, c.id, c.Name)
	if err != nil {
		return false, err
	}
	if !c.history.on() {
		if found {
			c.dropped = true
			c.db.logEvent(slog.LevelWarn, "no history is kept any more: the old one is removed", "collection", c.Name)
			err = c.dropLog(conn)
		}
		return false, err
	}
	l := &logbook{History: c.history, c: c, state: before}
	if err := conn.Exec("PRAGMA " + cacheSize(historyCacheKiB)); err != nil {
		return false, err
	}
	if found {
		err = checkSchema(conn, historyDDL(c.id))
	} else {
		err = conn.Exec(strings.Join(historyDDL(c.id), ";\n"))
	}
	if err != nil {
		return false, err
	}
	known, err := decodeColumns(before.columns)
	if err != nil {
		return false, err
	}
	var numbers []int
	l.columns, numbers = mergeColumns(known, c.table)
	l.kept, l.recent = keptColumns(numbers), newRecentLives()
	l.indexed = indexedParts(c.table, numbers, len(l.columns))
	text, err := json.Marshal(l.columns)
	if err != nil {
		return false, err
	}
	if l.state.columns = string(text); !found || l.state.columns != before.columns {
		if err := l.writeState(conn, l.state); err != nil {
			return false, err
		}
	}
	c.log = l
	if found && c.state.version == "" && c.prior.version == "" {
		c.prior, err = l.lastKnown(conn)
	}
	return !found, err
}

// lastKnown returns the state of the content after the last commit that readers see, as far
// as the log knows it. It is for a log whose content an earlier process dropped: that process
// kept the log, and ended before it wrote the content again.
func (l *logbook) lastKnown(conn *sqlite3.Conn) (last state, err error) {
	m, found, err := l.begin(conn).moments().one("seq<=? ORDER BY seq DESC", l.state.shown)
	if err != nil || !found {
		return last, err
	}
	if n, decimal := m.number.(int64); decimal {
		last.version = tarn.Version(strconv.FormatInt(n, 10))
	}
	low, _ := m.low.(int64)
	heard, err := number(conn, fmt.Sprintf("SELECT coalesce(max(heard_ms), ?3) FROM %s WHERE seq BETWEEN ?1 AND ?2", statesTable(l.c.id)), m.first, m.seq, low)
	last.lastContact = timeOf(heard)
	return last, err
}

// startLog writes to a new log what the collection holds, and what is known to be
// missing.
func (c *collection) startLog(conn *sqlite3.Conn) error {
	if dropped := c.droppedLog; dropped != nil && dropped.horizonMS > 0 {
		w := c.log.begin(conn)
		gap := changelog.Gap{Seq: 1, Gap: tarn.Gap{Cause: changelog.GapDropped}, Since: time.UnixMilli(dropped.horizonMS), Until: time.Now()}
		if err := first(w.gap(gap), w.writeState(conn, w.next)); err != nil {
			return err
		}
		c.log.state = w.next
	}
	if c.state.version == "" || !c.state.whole {
		return nil
	}
	return c.seed(conn)
}

// dropLog removes the log of a collection.
func (c *collection) dropLog(conn *sqlite3.Conn) error {
	for _, table := range historyTables(c.id) {
		if err := conn.Exec("DROP TABLE IF EXISTS " + quote(table)); err != nil {
			return err
		}
	}
	return first(execute(conn, "DELETE FROM tarn_logs WHERE id=?", c.id), execute(conn, "DELETE FROM tarn_log_gaps WHERE collection=?", c.id))
}

// seed writes the content of the collection to a new log: the log begins with it.
func (s *Store[T]) seed(conn *sqlite3.Conn) error {
	w, at := s.c.log.begin(conn), s.c.state
	w.alone = true // it is no commit: others do not learn of it
	seq := w.next.seq
	err := query(conn, "SELECT key, sum, body FROM "+s.c.objectsTable()+" ORDER BY key", func(row *sqlite3.Stmt) error {
		e := entry{key: tarn.Key(row.ColumnText(0))}
		object, err := s.decode(e.key, sumOf(row.ColumnRawBlob(1)), row.ColumnRawBlob(2), nil)
		if err == nil {
			err = s.encodeObject(&e, object)
		}
		if err == nil {
			err = w.open(e.key)
		}
		if err != nil {
			return err
		}
		seq += 2
		return w.put(seq, stateOf{uid: s.uid(object), version: s.versionIn(e.row), heard: at.lastContact}, s.buf, &e.row)
	})
	if err != nil {
		return err
	}
	positions, err := decodePositions(at.positions)
	if err == nil {
		err = w.commit(positions, at.version, false, at.lastContact)
	}
	if err == nil {
		s.c.log.state = w.next
	}
	return err
}

func (s *Store[T]) uid(object T) string {
	if s.identify == nil {
		return ""
	}
	return s.identify(object)
}

// versionIn returns the version of an object from its version column, empty if there is no
// such column.
func (s *Store[T]) versionIn(row Row) tarn.Version {
	if s.c.table == nil {
		return ""
	}
	for i, c := range s.c.table.Columns {
		if c.Version && i < len(row.Values) {
			return tarn.Version(fmt.Sprint(row.Values[i]))
		}
	}
	return ""
}
