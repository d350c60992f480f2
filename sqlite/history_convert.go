package sqlite

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// oldColumnsTable is the table of format 7 that had a row for each change of a column's
// value. It exists while lives are left to convert, and has the rows of those lives. So the
// next process can continue after a kill, and no other record of progress is needed.
func oldColumnsTable(id int64) string { return fmt.Sprintf("tarn_columns_%d", id) }

func oldColumnsDDL(id int64) string {
	return "CREATE TABLE " + oldColumnsTable(id) + " (life INTEGER NOT NULL, col INTEGER NOT NULL, seq INTEGER NOT NULL, value, PRIMARY KEY (life, col, seq)) WITHOUT ROWID"
}

// convertedAtOnce is how many states are converted in one transaction: the log beside the
// file must not grow to the size of the history. Tests change it.
var convertedAtOnce int64 = 20_000

// progress logs how far a history was brought into the present format, every ten seconds:
// the directory cannot be used meanwhile.
type progress struct {
	db   *DB
	last time.Time
}

const reportEvery = 10 * time.Second

func (p *progress) report(collection string, done, of int64) {
	if p.last.IsZero() {
		p.last = time.Now()
	}
	if time.Since(p.last) < reportEvery {
		return
	}
	p.last = time.Now()
	p.db.logEvent(slog.LevelInfo, "the history is brought into the present format before the directory can be used", "collection", collection, "percent", done*100/max(of, 1))
}

// convertHistories moves the states of formats up to 9 to the tables of the present one, and
// gives those of format 7 the values of their columns, before anything is read or written.
//
// Why not beside the mirror: a state can only be added to a life that was converted, and
// the updates of a minute touch most of them.
func (db *DB) convertHistories(conn *sqlite3.Conn) error {
	p := &progress{db: db}
	if err := db.moveStates(conn, p); err != nil {
		return err
	}
	var all []logConverter
	err := query(conn, "SELECT c.id, c.name FROM tarn_collections c JOIN sqlite_schema s ON s.name = 'tarn_columns_' || c.id", func(row *sqlite3.Stmt) error {
		all = append(all, logConverter{db: db, reader: reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}, id: row.ColumnInt64(0), owner: row.ColumnText(1)})
		return nil
	})
	for _, c := range all {
		if err == nil {
			err = c.convert(p)
		}
	}
	return err
}

// logConverter converts the history of one collection.
type logConverter struct {
	reader
	db    *DB
	id    int64
	owner string
	// state is the row of the log, and done counts the converted states.
	state logState
	done  int64
}

func (c *logConverter) convert(p *progress) error {
	if err := checkSchema(c.conn, []string{oldColumnsDDL(c.id)}); err != nil {
		return err
	}
	defer func() {
		for _, stmt := range c.stmts {
			_ = withoutPanic(stmt.Close) // it repeats the last error
		}
	}()
	for more := true; more; {
		var err error
		if more, err = c.some(); err != nil {
			if !c.conn.GetAutocommit() {
				err = first(err, c.conn.Exec("ROLLBACK"))
			}
			return err
		}
		p.report(c.owner, c.done, c.state.states)
	}
	return nil
}

// some converts the states of some lives in one transaction. It reports whether there are
// more.
func (c *logConverter) some() (more bool, err error) {
	if err := c.conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	found := false
	if c.state, found, err = readLog(c.conn, c.db.keys, c.id, c.owner); err != nil {
		return false, err
	}
	for end := c.done + convertedAtOnce; found && c.done < end; {
		life := int64(0)
		err := c.query("SELECT life FROM "+oldColumnsTable(c.id)+" ORDER BY life LIMIT 1", func(row *sqlite3.Stmt) error {
			life, more = row.ColumnInt64(0), true
			return nil
		})
		if err == nil && life > 0 {
			err = c.life(life)
		}
		if err != nil {
			return false, err
		}
		if life == 0 {
			more = false
			break
		}
	}
	if found {
		l := &logbook{c: &collection{Collection: Collection{Name: c.owner}, db: c.db, id: c.id}}
		err = l.writeState(c.conn, c.state)
	}
	if err == nil && !more {
		err = c.conn.Exec("DROP TABLE " + oldColumnsTable(c.id))
	}
	return more, inTurn(err, func() error { return c.conn.Exec("COMMIT") })
}

// oldValue is a row of format 7.
type oldValue struct {
	number int
	seq    int64
	value  any
}

// convertedState is a state of format 7.
type convertedState struct {
	seq, heard, base int64
	version          any
	op               changelog.Operation
	cols, body       []byte
	sum              Sum
}

// life converts the states of a life. The values of each base are those of its first
// remaining state. A damaged state keeps its checksum, so that it stays damaged.
func (c *logConverter) life(id int64) error {
	var changes []oldValue
	err := c.query("SELECT col, seq, value FROM "+oldColumnsTable(c.id)+" WHERE life=? ORDER BY seq, col", func(row *sqlite3.Stmt) error {
		changes = append(changes, oldValue{int(row.ColumnInt64(0)), row.ColumnInt64(1), stored(row, 2)})
		return nil
	}, id)
	if err != nil {
		return err
	}
	var key tarn.Key
	var uid string
	err = c.query("SELECT key, uid FROM "+livesTable(c.id)+" WHERE id=?", func(row *sqlite3.Stmt) error {
		key, uid = tarn.Key(row.ColumnText(0)), row.ColumnText(1)
		return nil
	}, id)
	if err != nil {
		return err
	}
	type oldBase struct {
		before, now Sum
		cols        []byte
	}
	bases := map[int64]*oldBase{}
	err = c.query("SELECT id, sum FROM "+basesTable(c.id)+" WHERE life=?", func(row *sqlite3.Stmt) error {
		bases[row.ColumnInt64(0)] = &oldBase{before: sumOf(row.ColumnRawBlob(1))}
		return nil
	}, id)
	if err != nil {
		return err
	}
	sums, values := c.db.keys.sums, map[int]any{}
	convert := func(s convertedState) error {
		var changed []oldValue
		for len(changes) > 0 && changes[0].seq <= s.seq {
			changed, changes = append(changed, changes[0]), changes[1:]
		}
		for _, v := range changed {
			values[v.number] = v.value
		}
		all := valueList(values)
		base := bases[s.base]
		if base == nil { // it is lost, and so is the state
			return nil
		}
		if base.cols == nil {
			base.cols, base.now = all, baseSum(sums, base.before, all)
			if err := c.query("UPDATE "+basesTable(c.id)+" SET cols=?2, sum=?3 WHERE id=?1", noRow, s.base, all, base.now); err != nil {
				return err
			}
		}
		sound := stateSum(sums, c.owner, key, uid, id, s.seq, s.version, s.heard, s.op, s.base, base.before, s.cols, s.body) == s.sum && bytes.Equal(oldSum(sums, changed), s.cols)
		cols, sum := differentValues(nil, base.cols, all), s.sum
		if sound {
			sum = stateSum(sums, c.owner, key, uid, id, s.seq, s.version, s.heard, s.op, s.base, base.now, cols, s.body)
		}
		c.state.sum += sum.number() - s.sum.number()
		return c.query("UPDATE "+statesTable(c.id)+" SET cols=?3, sum=?4 WHERE life=?1 AND seq=?2", noRow, id, s.seq, cols, sum)
	}
	for last := int64(-1); ; {
		some, err := c.states(id, last)
		if err != nil {
			return err
		}
		if len(some) == 0 {
			break
		}
		for _, s := range some {
			if err := convert(s); err != nil {
				return err
			}
			c.done++
		}
		last = some[len(some)-1].seq
	}
	return c.query("DELETE FROM "+oldColumnsTable(c.id)+" WHERE life=?", noRow, id)
}

// states are the next states of a life.
func (c *logConverter) states(life, after int64) (all []convertedState, err error) {
	err = c.query("SELECT seq, version, heard_ms, op, base, cols, sum, body FROM "+statesTable(c.id)+" WHERE life=? AND seq>? ORDER BY seq LIMIT ?", func(row *sqlite3.Stmt) error {
		all = append(all, convertedState{
			seq: row.ColumnInt64(0), version: stored(row, 1), heard: row.ColumnInt64(2), op: changelog.Operation(row.ColumnInt64(3)), base: row.ColumnInt64(4),
			cols: row.ColumnBlob(5, nil), sum: sumOf(row.ColumnRawBlob(6)), body: row.ColumnBlob(7, nil),
		})
		return nil
	}, life, after, chunk)
	return all, err
}

// valueList is a list of values by their numbers.
func valueList(values map[int]any) (list []byte) {
	numbers := make([]int, 0, len(values))
	for number := range values {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		list = appendValue(list, number, values[number])
	}
	return list
}

// oldSum is the checksum of the values that changed with a state, in the order of their
// numbers.
func oldSum(sums *summer, changed []oldValue) []byte {
	if len(changed) == 0 {
		return nil
	}
	sum := sums.sum(func(h *sumHash) {
		h.text("columns")
		for _, v := range changed {
			h.int(int64(v.number))
			h.value(v.value)
		}
	})
	return sum[:8]
}
