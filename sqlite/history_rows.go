package sqlite

import (
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn/changelog"
)

// statesTogether is how many states are written by one statement. A statement for each takes
// some microseconds more: it opens the table and its indexes (bench/history).
const statesTogether = 16

// stateRow is a row of tarn_states.
type stateRow struct {
	life, seq int64
	version   any
	heard     int64
	op        changelog.Operation
	base      int64
	cols      []byte
	sum       Sum
	body      []byte
}

// stateColumns is how many columns a row has.
const stateColumns = 9

// bind sets the parameters of a statement from the first on. Why not with [run]: each number
// would be an allocation.
func (r *stateRow) bind(stmt *sqlite3.Stmt, first int) error {
	for i, n := range [...]int64{r.life, r.seq, 0, r.heard, int64(r.op), r.base} {
		if i == 2 {
			continue // the version
		}
		if err := stmt.BindInt64(first+i, n); err != nil {
			return err
		}
	}
	if err := bind(stmt, first+2, r.version); err != nil {
		return err
	}
	for i, b := range [...][]byte{r.cols, r.sum[:], r.body} {
		if err := bind(stmt, first+6+i, b); err != nil {
			return err
		}
	}
	return nil
}

// insertStates is the statement that writes n states. A failure ends the transaction, so
// SQLite need not be able to undo a part of the statement: that would copy each page which
// the statement changes.
func insertStates(table string, n int) string {
	row := "(" + strings.Repeat("?, ", stateColumns-1) + "?)"
	return "INSERT OR FAIL INTO " + table + " (life, seq, version, heard_ms, op, base, cols, sum, body) VALUES " + strings.Repeat(row+", ", n-1) + row
}

// insert writes a state, or keeps it until some can be written together.
func (w *logWrite) insert(r stateRow) error {
	if !w.together {
		return w.insertOne(&r)
	}
	if w.waiting = append(w.waiting, r); len(w.waiting) < statesTogether {
		return nil
	}
	for i := range w.waiting {
		if err := w.waiting[i].bind(w.stmts.addStates, 1+i*stateColumns); err != nil {
			return err
		}
	}
	w.waiting = w.waiting[:0]
	return run(w.stmts.addStates, noRow)
}

func (w *logWrite) insertOne(r *stateRow) error {
	if err := r.bind(w.stmts.addState, 1); err != nil {
		return err
	}
	return run(w.stmts.addState, noRow)
}

// flush writes the waiting states. It must run before the table is read.
func (w *logWrite) flush() error {
	for i := range w.waiting {
		if err := w.insertOne(&w.waiting[i]); err != nil {
			return err
		}
	}
	w.waiting = w.waiting[:0]
	return nil
}
