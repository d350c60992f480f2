package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Limits bound what a query may cost. The zero value is a good choice.
type Limits struct {
	// Rows is how many rows are given at most; 10,000 if 0.
	Rows int
	// Bytes is how much they may have in all; 64 MiB if 0.
	Bytes int
	// Time is how long it may take; 10 s if 0.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Rows <= 0 {
		l.Rows = 10_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 64 << 20
	}
	if l.Time <= 0 {
		l.Time = 10 * time.Second
	}
	return l
}

// longestValue is how long a value may become while a query is computed. No object
// is longer. A query is stopped between the steps that it is made of, so no step may
// have much to do.
const longestValue = 8 << 20

// longestPattern is how long one of LIKE and GLOB may be, for the same reason: at
// worst each character is compared with each.
const longestPattern = 160

// queryMemory is what SQLite may use for one query, to sort or to build a text. It
// is a variable for the sake of tests.
var queryMemory int64 = 256 << 20

// Result is what a query found.
type Result struct {
	Columns []string
	// Rows have a value for each column: nil, int64, float64, string or []byte.
	Rows [][]any
	// Cut says that there were more, beyond the limits.
	Cut  bool
	Took time.Duration
}

// ErrNotReading says that a query would do something else than read.
var ErrNotReading = errors.New("only reading is allowed here")

// Query answers a statement from the file of a directory, whether a process has it
// open or not. It sees one state, of all collections.
//
// It can do nothing but read: an authorizer refuses all else when the statement is
// compiled. A read-only connection alone would not do, since it can still ATTACH
// another file, and PRAGMA query_only can be undone by a PRAGMA.
func Query(ctx context.Context, dir, sql string, limits Limits, args ...any) (*Result, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("sqlite: %s holds no replica: %w", dir, err)
	}
	limits = limits.withDefaults()
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, errTooLong)
	defer cancel()
	conn, err := openForQuery(ctx, path)
	if errors.Is(err, sqlite3.INTERRUPT) {
		return nil, stopped(ctx, limits)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	defer closeAll(conn)
	guard := &authorizer{}
	if err := conn.SetAuthorizer(guard.authorize); err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	var result *Result
	err = withoutPanic(func() (err error) {
		result, err = ask(conn, sql, limits, args)
		return err
	})
	switch {
	case err == nil:
		result.Took = time.Since(start)
		return result, nil
	case guard.refused != "":
		return nil, fmt.Errorf("sqlite: %w: %s", ErrNotReading, guard.refused)
	case strings.Contains(err.Error(), "because it is a view"):
		// SQLite says so before it asks the authorizer.
		return nil, fmt.Errorf("sqlite: %w: %w", ErrNotReading, err)
	case errors.Is(err, sqlite3.INTERRUPT):
		return nil, stopped(ctx, limits)
	case errors.Is(err, errPanicked) && strings.Contains(err.Error(), "out of memory"):
		return nil, fmt.Errorf("sqlite: the query needs more than %d MiB of memory", queryMemory>>20)
	}
	return nil, fmt.Errorf("sqlite: %w", err)
}

// stopped says why a query was.
func stopped(ctx context.Context, limits Limits) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return fmt.Errorf("sqlite: the query was stopped after %s: %w", limits.Time, errTooLong)
	}
	return fmt.Errorf("sqlite: the query was stopped: %w", context.Cause(ctx))
}

var errTooLong = errors.New("it took too long")

// Query answers a statement from this directory; see the function [Query]. What is
// still to be written is not seen: [DB.Flush] comes before, where that matters.
func (db *DB) Query(ctx context.Context, sql string, limits Limits, args ...any) (*Result, error) {
	return Query(ctx, db.dir, sql, limits, args...)
}

func openForQuery(ctx context.Context, path string) (*sqlite3.Conn, error) {
	conn, err := openReading(path)
	if err != nil {
		return nil, err
	}
	conn.SetInterrupt(ctx)
	conn.HardHeapLimit(queryMemory)
	conn.Limit(sqlite3.LIMIT_ATTACHED, 0)
	conn.Limit(sqlite3.LIMIT_SQL_LENGTH, 1<<20)
	conn.Limit(sqlite3.LIMIT_LENGTH, longestValue)
	conn.Limit(sqlite3.LIMIT_LIKE_PATTERN_LENGTH, longestPattern)
	_, err1 := conn.Config(sqlite3.DBCONFIG_DEFENSIVE, true)
	_, err2 := conn.Config(sqlite3.DBCONFIG_TRUSTED_SCHEMA, false)
	err = errors.Join(err1, err2, quickFunctions(conn), conn.BusyTimeout(busyTimeout), conn.Exec("PRAGMA temp_store=MEMORY"))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// ask runs one statement.
func ask(conn *sqlite3.Conn, sql string, limits Limits, args []any) (*Result, error) {
	stmt, tail, err := conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return nil, errors.New("there is no statement in the query")
	}
	defer stmt.Close()
	// What follows is compiled too: only comments come to nothing.
	if next, _, err := conn.Prepare(tail); err != nil || next != nil {
		return nil, errors.New("one statement at a time, please")
	}
	if n := stmt.BindCount(); n != len(args) {
		return nil, fmt.Errorf("the query has %d parameters, and %d values were given", n, len(args))
	}
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return nil, err
		}
	}
	result := &Result{}
	for i := range stmt.ColumnCount() {
		result.Columns = append(result.Columns, stmt.ColumnName(i))
	}
	size := 0
	for stmt.Step() {
		if len(result.Rows) == limits.Rows || size > limits.Bytes {
			result.Cut = true
			return result, nil
		}
		row := make([]any, len(result.Columns))
		for i := range row {
			row[i] = value(stmt, i)
			switch v := row[i].(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
			size += 16
		}
		result.Rows = append(result.Rows, row)
	}
	return result, stmt.Err()
}

func value(stmt *sqlite3.Stmt, i int) any {
	switch stmt.ColumnType(i) {
	case sqlite3.INTEGER:
		return stmt.ColumnInt64(i)
	case sqlite3.FLOAT:
		return stmt.ColumnFloat(i)
	case sqlite3.TEXT:
		return stmt.ColumnText(i)
	case sqlite3.BLOB:
		return stmt.ColumnBlob(i, nil)
	}
	return nil
}

// authorizer lets a statement be compiled that only reads.
type authorizer struct {
	// refused is the first thing that was not allowed.
	refused string
}

// forbidden are the functions that do more than compute, and those that cannot be
// stopped and take the square of what they are given.
var forbidden = map[string]bool{
	"load_extension": true, "fts3_tokenizer": true, "readfile": true, "writefile": true, "edit": true, "sqlite_log": true,
	"decimal_mul": true, "decimal_pow2": true, "json_patch": true, "jsonb_patch": true,
}

func (a *authorizer) authorize(action sqlite3.AuthorizerActionCode, third, fourth, schema, inner string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_FUNCTION:
		if !forbidden[strings.ToLower(fourth)] {
			return sqlite3.AUTH_OK
		}
		third = fourth
	}
	if a.refused == "" {
		a.refused = actionName(action)
		if third != "" {
			a.refused += " of " + third
		}
	}
	return sqlite3.AUTH_DENY
}

// actionName says what a statement wanted to do.
func actionName(action sqlite3.AuthorizerActionCode) string {
	names := map[sqlite3.AuthorizerActionCode]string{
		sqlite3.AUTH_INSERT: "an INSERT", sqlite3.AUTH_UPDATE: "an UPDATE", sqlite3.AUTH_DELETE: "a DELETE",
		sqlite3.AUTH_ATTACH: "an ATTACH", sqlite3.AUTH_DETACH: "a DETACH", sqlite3.AUTH_PRAGMA: "a PRAGMA",
		sqlite3.AUTH_TRANSACTION: "a transaction", sqlite3.AUTH_SAVEPOINT: "a SAVEPOINT", sqlite3.AUTH_FUNCTION: "the use",
		sqlite3.AUTH_ANALYZE: "an ANALYZE", sqlite3.AUTH_REINDEX: "a REINDEX", sqlite3.AUTH_ALTER_TABLE: "an ALTER",
	}
	if name, ok := names[action]; ok {
		return name
	}
	return "a change"
}
