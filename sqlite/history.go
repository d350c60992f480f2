package sqlite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// History says which past states are kept, and for how long; see package changelog. The zero
// value keeps none, and removes what was kept before.
type History struct {
	// Age is how long states are kept, 0 means without a limit.
	Age time.Duration
	// Bytes bounds the file, content included, within 5 %; 0 means without a limit. The log
	// beside it has a limit of its own, and free pages of a file that was larger stay.
	// At the bound the oldest states of all collections go first. For each object that
	// lived at the horizon, the state that was valid there stays.
	Bytes int64
	// Thin, if its fields are set, keeps only the last state of an object within each
	// interval of Every, once states are older than After. Deletes stay.
	Thin Thinning
}

// Thinning is a part of [History].
type Thinning struct{ After, Every time.Duration }

func (h History) on() bool { return h.Age > 0 || h.Bytes > 0 }

// validate checks the settings before a directory is touched.
func (h History) validate() error {
	switch {
	case h.Age < 0 || h.Bytes < 0 || h.Thin.After < 0 || h.Thin.Every < 0:
		return fmt.Errorf("sqlite: a history of %s and %d bytes, thinned after %s to one state in %s: none of them can be negative", h.Age, h.Bytes, h.Thin.After, h.Thin.Every)
	case !h.on() && h.Thin != (Thinning{}):
		return fmt.Errorf("sqlite: thinning without a history: set its age or its size")
	case h.Bytes > 0 && h.Bytes < smallestHistory:
		return fmt.Errorf("sqlite: a history of %d bytes: it bounds the whole file, and needs %d MiB at least", h.Bytes, smallestHistory>>20)
	case (h.Thin.After > 0) != (h.Thin.Every > 0):
		return fmt.Errorf("sqlite: thinning needs both an age and an interval")
	case h.Thin.Every%time.Millisecond != 0:
		return fmt.Errorf("sqlite: thinning to one state in %s: the interval must be whole milliseconds, as the times of states are", h.Thin.Every)
	}
	return nil
}

const smallestHistory = 1 << 20

// logbook is the change log of a collection in its file. The DB's lock guards it.
//
// It is written in the transaction of the content, so that after any crash both agree.
// Its tables, by the id of the collection:
//
//   - tarn_lives has a row for each life of an object: from its first state to its
//     deletion. An object that is created again under the same key is another life.
//   - tarn_states has a row for each state, in the order of the log, and an index by life:
//     a state as of a place is one seek in it. The body is the difference
//     against a whole state in tarn_bases: so any state is two rows. A state begins a new
//     base when differences have become large. The same holds for the values of columns,
//     so that SQL as of a moment decodes no object. Wide columns are computed from the
//     object; see [RegisterRenderer].
//   - tarn_moments has a row for each commit with states, or several for a large one: by
//     it a time, or a version, finds its place.
//
// tarn_logs has one row for each log, tarn_log_gaps the gaps of all.
//
// Why differences against a base and not against the state before: a chain of n
// differences needs n rows to read a state, and a whole state every n-th costs more than
// the longer differences do (bench/history).
//
// Why the states of a life do not lie side by side: each state of a commit would then be
// written to another page.
type logbook struct {
	History
	c       *collection
	state   logState
	columns []logColumn
	// kept are the columns of a row that are kept by value.
	kept []keptColumn
	// indexed has the part of the row for each column, by the column's number. It is nil if a
	// column with an index is not kept by value.
	indexed []rowParts
	stmts   logStmts
	// note is why no history is kept at present, empty if it is.
	note string
	// lastThinned is when this process last thinned out all states that were old enough.
	lastThinned time.Time
	// recent has lives that were written lately.
	recent recentLives
}

// alive is the end of a life that has not ended. It fits into six bytes of a row.
const alive = 1<<47 - 1

// logState is the row of tarn_logs.
type logState struct {
	// seq is the last entry, shown the last one that readers see: the entries of a first
	// state that is not complete yet are after it.
	seq, shown int64
	// horizon is the oldest place that can be read, horizonMS its time. thinned is the
	// place up to which states were thinned out.
	horizon, horizonMS, thinned int64
	// states counts the states, sum adds up their checksums; lives counts the lives.
	states, lives int64
	sum           uint64
	// pruned is the place that pruning has reached, at most the horizon. thinning is the
	// place up to which states were thinned out to one in an interval of everyMS.
	pruned, thinning, everyMS int64
	// epochs counts the changes of epoch.
	epochs int64
	epoch  string
	// columns are the logColumns as JSON.
	columns string
}

const logColumns = "id, seq, shown, horizon, horizon_ms, thinned, states, lives, sum, pruned, thinning, every_ms, epochs, epoch, columns, proof"

func (s logState) numbers() []int64 {
	return []int64{s.seq, s.shown, s.horizon, s.horizonMS, s.thinned, s.states, s.lives, int64(s.sum), s.pruned, s.thinning, s.everyMS, s.epochs}
}

func (s logState) proof(keys *fileKeys, owner string) Sum {
	return keys.sums.sum(func(h *sumHash) {
		h.text("log")
		h.text(owner)
		for _, n := range s.numbers() {
			h.int(n)
		}
		h.text(s.epoch)
		h.text(s.columns)
	})
}

// readLog reads the row of a log; found is false if there is none.
func readLog(conn *sqlite3.Conn, keys *fileKeys, id int64, owner string) (s logState, found bool, err error) {
	err = query(conn, "SELECT "+logColumns+" FROM tarn_logs WHERE id=?", func(row *sqlite3.Stmt) error {
		found = true
		s = scanLog(row)
		if keys != nil && s.proof(keys, owner) != sumOf(row.ColumnRawBlob(15)) {
			return fmt.Errorf("%w: the row of %q in tarn_logs", errBadRow, owner)
		}
		return nil
	}, id)
	return s, found, err
}

func scanLog(row *sqlite3.Stmt) logState {
	return logState{
		seq: row.ColumnInt64(1), shown: row.ColumnInt64(2), horizon: row.ColumnInt64(3), horizonMS: row.ColumnInt64(4), thinned: row.ColumnInt64(5),
		states: row.ColumnInt64(6), lives: row.ColumnInt64(7), sum: uint64(row.ColumnInt64(8)), pruned: row.ColumnInt64(9), thinning: row.ColumnInt64(10),
		everyMS: row.ColumnInt64(11), epochs: row.ColumnInt64(12), epoch: row.ColumnText(13), columns: row.ColumnText(14),
	}
}

func (l *logbook) writeState(conn *sqlite3.Conn, s logState) error {
	args := []any{l.c.id}
	for _, n := range s.numbers() {
		args = append(args, n)
	}
	args = append(args, s.epoch, s.columns, s.proof(l.c.db.keys, l.c.Name))
	if l.stmts.state == nil {
		return execute(conn, writeLogRow, args...)
	}
	return run(l.stmts.state, noRow, args...)
}

const writeLogRow = "REPLACE INTO tarn_logs (" + logColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

// logColumn is a column of the collection's table, as the log knows it. Its number is
// its place in the list, which only grows: a column that the table no longer has is Gone,
// and its values stay readable. Number 0 is that of the labels.
type logColumn struct {
	Name string
	Type string `json:",omitempty"`
	// Kind is how the value is found: "" by the values of a state, or as below.
	Kind string `json:",omitempty"`
	Expr string `json:",omitempty"`
	Fill string `json:",omitempty"`
	Gone bool   `json:",omitempty"`
}

const (
	wideKind     = "wide"
	computedKind = "computed"
	versionKind  = "version"
)

// mergeColumns adds the columns of a table to those that a log knows.
func mergeColumns(known []logColumn, t *prepared) (all []logColumn, numbers []int) {
	if t == nil {
		return known, nil
	}
	all = append(all, known...)
	for i := range all {
		all[i].Gone = i > 0
	}
	if len(all) == 0 {
		all = append(all, logColumn{Name: "labels", Type: "JSON"})
	}
	for _, c := range t.Columns {
		next := logColumn{Name: c.Name, Type: c.Type, Expr: c.Expr, Fill: c.Fill}
		switch {
		case c.Expr != "":
			next.Kind = computedKind
		case c.Wide:
			next.Kind = wideKind
		case c.Version:
			next.Kind = versionKind
		}
		at := -1
		for i := 1; i < len(all); i++ {
			if strings.EqualFold(all[i].Name, c.Name) && all[i].Kind == next.Kind {
				at = i
			}
		}
		if at < 0 {
			at = len(all)
			all = append(all, next)
		}
		all[at] = next
		if next.Kind != "" {
			at = -1
		}
		numbers = append(numbers, at)
	}
	return all, numbers
}

func decodeColumns(text string) (all []logColumn, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%w: the columns of a log cannot be read: %w", errBadRow, err)
	}
	return all, nil
}

func livesTable(id int64) string   { return fmt.Sprintf("tarn_lives_%d", id) }
func statesTable(id int64) string  { return fmt.Sprintf("tarn_states_%d", id) }
func basesTable(id int64) string   { return fmt.Sprintf("tarn_bases_%d", id) }
func momentsTable(id int64) string { return fmt.Sprintf("tarn_moments_%d", id) }
func historyTables(id int64) []string {
	return []string{livesTable(id), statesTable(id), basesTable(id), momentsTable(id), rewriteTable(id)}
}

// historyDDL makes the tables of a log.
func historyDDL(id int64) []string {
	lives, states, bases, moments := livesTable(id), statesTable(id), basesTable(id), momentsTable(id)
	return []string{
		"CREATE TABLE " + lives + " (id INTEGER PRIMARY KEY, key TEXT NOT NULL, uid TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, sum BLOB NOT NULL)",
		"CREATE INDEX " + lives + "_by_key ON " + lives + " (key, last)",
		"CREATE INDEX " + lives + "_by_last ON " + lives + " (last, first)",
		"CREATE TABLE " + states + " (seq INTEGER PRIMARY KEY, life INTEGER NOT NULL, version, heard_ms INTEGER NOT NULL, until_ms INTEGER, op INTEGER NOT NULL, base INTEGER NOT NULL, cols BLOB, sum BLOB NOT NULL, body BLOB)",
		"CREATE INDEX " + states + "_by_life ON " + states + " (life)",
		"CREATE INDEX " + states + "_by_time ON " + states + " (heard_ms / 1000.0)",
		"CREATE TABLE " + bases + " (id INTEGER PRIMARY KEY, life INTEGER NOT NULL, sum BLOB NOT NULL, body BLOB NOT NULL, cols BLOB)",
		"CREATE INDEX " + bases + "_by_life ON " + bases + " (life)",
		"CREATE TABLE " + moments + " (seq INTEGER PRIMARY KEY, first INTEGER NOT NULL, low_ms INTEGER, number INTEGER, epoch INTEGER NOT NULL, bytes INTEGER NOT NULL, sum BLOB)",
		"CREATE INDEX " + moments + "_by_low ON " + moments + " (low_ms) WHERE low_ms IS NOT NULL",
		"CREATE INDEX " + moments + "_by_number ON " + moments + " (epoch, number)",
	}
}

// logStmts are the statements that write a log.
type logStmts struct {
	life, last, base                    *sqlite3.Stmt
	addLife, endLife, addState, addBase *sqlite3.Stmt
	addStates                           *sqlite3.Stmt
	moment, gap, state                  *sqlite3.Stmt
}

func (s logStmts) all() []*sqlite3.Stmt {
	return []*sqlite3.Stmt{s.life, s.last, s.base, s.addLife, s.endLife, s.addState, s.addStates, s.addBase, s.moment, s.gap, s.state}
}

func (l *logbook) prepare(make func(sql string) *sqlite3.Stmt) {
	id := l.c.id
	lives, states, bases, moments := livesTable(id), statesTable(id), basesTable(id), momentsTable(id)
	l.stmts = logStmts{
		life:      make(fmt.Sprintf("SELECT id, uid, first FROM %s WHERE key=?1 AND last=%d", lives, alive)),
		last:      make("SELECT seq, version, op, base, body, cols FROM " + states + " WHERE life=?1 ORDER BY seq DESC LIMIT 1"),
		base:      make("SELECT sum, body, cols FROM " + bases + " WHERE id=?1"),
		addLife:   make("INSERT INTO " + lives + " (id, key, uid, first, last, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
		endLife:   make("UPDATE " + lives + " SET last=?2, sum=?3 WHERE id=?1"),
		addState:  make(insertStates(states, 1)),
		addStates: make(insertStates(states, statesTogether)),
		addBase:   make("INSERT INTO " + bases + " (life, sum, body, cols) VALUES (?1, ?2, ?3, ?4)"),
		moment:    make(fmt.Sprintf(addMoment, moments)),
		gap:       make(writeGap),
		state:     make(writeLogRow),
	}
}

const gapColumns = "seq, section, from_version, to_version, cause, from_ms, to_ms, sum"

const writeGap = "REPLACE INTO tarn_log_gaps (collection, " + gapColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

// storedVersion returns a version as rows store it: as a number if it is one, which is
// shorter.
func storedVersion(v string) any {
	n, decimal := int64(0), v != "" && len(v) < 18 && (v[0] != '0' || v == "0")
	for _, r := range []byte(v) {
		if r < '0' || r > '9' {
			decimal = false
			break
		}
		n = n*10 + int64(r-'0')
	}
	if decimal {
		return n
	}
	return v
}

// versionNumber returns a version as a number, or nil if it is not a number.
func versionNumber(v string) any {
	if n, ok := storedVersion(v).(int64); ok {
		return n
	}
	return nil
}

// historyOf returns the history of a collection: its own, or that of the directory.
func (db *DB) historyOf(c Collection) History {
	if c.WithoutHistory {
		return History{}
	}
	return cmp.Or(c.History, db.opts.History)
}

// History returns the History of [Options].
func (db *DB) History() History { return db.opts.History }
