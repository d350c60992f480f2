package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

const (
	// longestValue limits the size of a value during a statement. No object is larger.
	longestValue = 8 << 20
	// longestPattern limits the length of patterns of LIKE and GLOB: at worst each of
	// their characters is compared with each of the text.
	longestPattern = 160
	// valueCost and rowCost count for each value and row in addition to its bytes: the
	// memory that Go needs to hold them.
	valueCost, rowCost = 32, 32
)

// queryMemory is what SQLite may use for one statement, to sort or to build a text.
// It is a variable for the sake of tests.
var queryMemory int64 = 128 << 20

// statement is a running statement.
type statement struct {
	limits  Limits
	to      RowWriter
	guard   authorizer
	past    past
	stopper *stopper
	summary Summary
	// writeErr is the sink's own error, sinkPanic what it panicked with.
	writeErr  error
	sinkPanic any
	inSink    bool
}

// run runs the statement on its own connection. Why not one of a pool: limits and
// authorizer would have to be removed again, and a connection that was stopped by force
// cannot be used again.
func (s *statement) run(ctx context.Context, path, sql string, args []any) error {
	err := readGuarded(ctx, path, min(s.limits.Time/4, maxGrace), func(conn *sqlite3.Conn, stopper *stopper) error {
		defer func() {
			if s.inSink {
				s.sinkPanic = recover() // the sink's panic is for its caller
			}
		}()
		s.stopper = stopper
		if err := limit(ctx, conn); err != nil {
			return err
		}
		if err := first(pinSnapshot(conn), conn.SetAuthorizer(s.guard.authorize)); err != nil {
			return err
		}
		s.guard.building = true
		if err := s.past.build(conn, sql); err != nil {
			return err
		}
		s.guard = authorizer{}
		return s.answer(conn, sql, args)
	})
	if s.sinkPanic != nil {
		panic(s.sinkPanic)
	}
	return err
}

// limit configures a connection for an untrusted statement.
func limit(ctx context.Context, conn *sqlite3.Conn) error {
	conn.SetInterrupt(ctx)
	conn.HardHeapLimit(queryMemory)
	conn.Limit(sqlite3.LIMIT_ATTACHED, 0)
	conn.Limit(sqlite3.LIMIT_SQL_LENGTH, 1<<20)
	conn.Limit(sqlite3.LIMIT_LENGTH, longestValue)
	conn.Limit(sqlite3.LIMIT_LIKE_PATTERN_LENGTH, longestPattern)
	_, err1 := conn.Config(sqlite3.DBCONFIG_DEFENSIVE, true)
	_, err2 := conn.Config(sqlite3.DBCONFIG_TRUSTED_SCHEMA, false)
	return first(err1, err2, quickFunctions(ctx, conn), conn.BusyTimeout(busyTimeout), conn.Exec("PRAGMA temp_store=MEMORY"))
}

// answer compiles and runs the statement.
func (s *statement) answer(conn *sqlite3.Conn, sql string, args []any) error {
	stmt, tail, err := conn.Prepare(sql)
	if err != nil {
		return err
	}
	if stmt == nil {
		return errors.New("there is no statement in the query")
	}
	// The rest is compiled too: only a comment compiles to no statement.
	switch next, _, err := conn.Prepare(tail); {
	case errors.Is(err, sqlite3.INTERRUPT):
		return err
	case err != nil || next != nil:
		return errors.New("one statement at a time, please")
	}
	if n := stmt.BindCount(); n != len(args) {
		return fmt.Errorf("the query has %d parameters, and %d values were given", n, len(args))
	}
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return err
		}
	}
	head := Head{Columns: make([]string, stmt.ColumnCount())}
	for i := range head.Columns {
		head.Columns[i] = stmt.ColumnName(i)
	}
	if head.Gaps, err = s.past.check(conn, &s.guard); err != nil {
		return err
	}
	if head.Read, err = readTableStates(conn, s.guard.read); err != nil {
		return err
	}
	return s.rows(stmt, head)
}

// rows passes the rows to the sink. It counts the bytes of a row before the sink gets it,
// without a copy: a row may have the same value two thousand times, which SQLite holds
// once.
func (s *statement) rows(stmt *sqlite3.Stmt, head Head) error {
	left := s.limits.Bytes
	values := make([]any, len(head.Columns))
	for stmt.Step() {
		if s.summary.Rows == s.limits.Rows {
			s.summary.Cut = true
			return nil
		}
		size := rowCost
		for i := range values {
			values[i] = value(stmt, i)
			size += valueCost + sizeOf(values[i])
		}
		if size > left {
			if s.summary.Rows == 0 {
				return fmt.Errorf("the first row has %d bytes, and the answer may have %d: ask for less of it", size, s.limits.Bytes)
			}
			s.summary.Cut = true
			return nil
		}
		left -= size
		if s.summary.Rows == 0 {
			if err := s.sink(func() error { return s.to.Begin(head) }); err != nil {
				return err
			}
		}
		if err := s.sink(func() error { return s.to.Row(values) }); err != nil {
			return err
		}
		s.summary.Rows++
	}
	if err := stmt.Err(); err != nil || s.summary.Rows > 0 {
		return err
	}
	return s.sink(func() error { return s.to.Begin(head) })
}

// sink calls the sink, and records that an error or a panic is its own.
func (s *statement) sink(call func() error) error {
	s.inSink = true
	s.writeErr = s.stopper.holdMemory(call)
	s.inSink = false
	return s.writeErr
}

// value is a column in SQLite's memory. Text is read as a blob, since SQLite would copy
// it otherwise to append a terminator.
func value(stmt *sqlite3.Stmt, i int) any {
	switch stmt.ColumnType(i) {
	case sqlite3.INTEGER:
		return stmt.ColumnInt64(i)
	case sqlite3.FLOAT:
		return stmt.ColumnFloat(i)
	case sqlite3.TEXT:
		return Text(stmt.ColumnRawBlob(i))
	case sqlite3.BLOB:
		return stmt.ColumnRawBlob(i)
	}
	return nil
}

func sizeOf(value any) int {
	switch v := value.(type) {
	case Text:
		return len(v)
	case []byte:
		return len(v)
	}
	return 0
}
