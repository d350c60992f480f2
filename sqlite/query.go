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

// Limits bound what a statement may cost. The zero value is a good choice.
type Limits struct {
	// Rows is how many rows are given at most; 10,000 if 0.
	Rows int
	// Bytes is how many bytes their values may have together; 64 MiB if 0.
	Bytes int
	// Time is how long the statement may take, waiting for its turn included; 10 s if
	// 0. A statement that does not stop by itself is stopped by force a quarter of that
	// later, a second at most.
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

// A RowWriter takes the answer to a statement while it is computed, so that nobody has
// to hold all of it.
type RowWriter interface {
	// Begin is called once, before the first row, or at the end if there is none.
	Begin(Head) error
	// Row is called for each row with a value for each column: nil, int64, float64,
	// [Text] or []byte. Text and bytes are SQLite's own memory: they are good until
	// Row returns. An error ends the statement and is returned as it is.
	Row(values []any) error
}

// Text is a text in SQLite's memory.
type Text []byte

// Head is what is known of an answer before its first row.
type Head struct {
	// Columns are their names.
	Columns []string
	// Read are the collections that the statement reads, by name, in the state that
	// the rows are from.
	Read []TableState
}

// Summary says how a statement ended.
type Summary struct {
	// Rows is how many were written.
	Rows int
	// Cut says that there were more, beyond the limits.
	Cut  bool
	Took time.Duration
}

// Result is an answer that was gathered.
type Result struct {
	Head
	// Rows have a value for each column: nil, int64, float64, string or []byte.
	Rows [][]any
	// Cut says that there were more, beyond the limits.
	Cut  bool
	Took time.Duration
}

var (
	// ErrNotReading says that a statement would do something else than read.
	ErrNotReading = errors.New("only reading is allowed here")
	// ErrTooMany says that so many statements are running that this one did not get
	// its turn in time.
	ErrTooMany = errors.New("too many statements are running")

	errTooLong = errors.New("it took too long")
)

// Query answers a statement from the file of a directory, whether a process has it
// open or not, and gathers the answer. See [Stream] for what holds of both.
func Query(ctx context.Context, dir, sql string, limits Limits, args ...any) (*Result, error) {
	limits = limits.withDefaults()
	if most := budgetBytes - queryMemory; int64(limits.Bytes) > most {
		return nil, fmt.Errorf("sqlite: an answer of up to %d MiB cannot be gathered: Limits.Bytes may be %d MiB at most; Stream has no such bound", limits.Bytes>>20, most>>20)
	}
	result := &Result{}
	summary, err := stream(ctx, dir, sql, limits, gatherer{result}, int64(limits.Bytes), args)
	if err != nil {
		return nil, err
	}
	result.Cut, result.Took = summary.Cut, summary.Took
	return result, nil
}

// gatherer is the writer that makes a [Result].
type gatherer struct{ *Result }

func (g gatherer) Begin(head Head) error {
	g.Head = head
	return nil
}

func (g gatherer) Row(values []any) error {
	row := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case Text:
			row[i] = string(v)
		case []byte:
			row[i] = append([]byte{}, v...)
		default:
			row[i] = v
		}
	}
	g.Rows = append(g.Rows, row)
	return nil
}

// Stream answers a statement from the file of a directory, whether a process has it
// open or not, and gives the rows away one by one. The statement sees one state of
// all collections, and [Head] says which.
//
//   - It can do nothing but read. An authorizer refuses everything else when the
//     statement is compiled. A read-only connection alone would not do: it can still
//     ATTACH another file, and PRAGMA query_only can be undone by a PRAGMA.
//   - It ends by its limit of time, or when ctx ends, whatever it computes; see
//     [stopper].
//   - SQLite may use 128 MiB for it, and all statements of the process share one
//     budget; see [budget].
//   - A panic of the writer is the caller's.
func Stream(ctx context.Context, dir, sql string, limits Limits, to RowWriter, args ...any) (Summary, error) {
	return stream(ctx, dir, sql, limits.withDefaults(), to, 0, args)
}

// Query answers a statement from this directory; see the function [Query]. It does
// not see what is still to be written: call [DB.Flush] before where that matters.
func (db *DB) Query(ctx context.Context, sql string, limits Limits, args ...any) (*Result, error) {
	return Query(ctx, db.dir, sql, limits, args...)
}

// Stream answers a statement from this directory; see the function [Stream].
func (db *DB) Stream(ctx context.Context, sql string, limits Limits, to RowWriter, args ...any) (Summary, error) {
	return Stream(ctx, db.dir, sql, limits, to, args...)
}

// stream runs a statement. held is how many bytes of the answer the writer keeps.
func stream(ctx context.Context, dir, sql string, limits Limits, to RowWriter, held int64, args []any) (Summary, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Summary{}, noReplica(dir, err)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, errTooLong)
	defer cancel()
	done, err := statements.enter(ctx, queryMemory+held)
	if err != nil {
		if errors.Is(context.Cause(ctx), errTooLong) {
			return Summary{}, fmt.Errorf("sqlite: %w: this one waited for %s", ErrTooMany, limits.Time)
		}
		return Summary{}, stopped(ctx, limits)
	}
	defer done()
	s := &statement{limits: limits, to: to}
	err = s.run(ctx, path, sql, args)
	s.summary.Took = time.Since(start)
	switch {
	case err == nil:
		return s.summary, nil
	case s.writeErr != nil:
		return s.summary, s.writeErr
	case s.guard.refused != "":
		return s.summary, fmt.Errorf("sqlite: %w: %s", ErrNotReading, s.guard.refused)
	case strings.Contains(err.Error(), "because it is a view"):
		// SQLite says so before it asks the authorizer.
		return s.summary, fmt.Errorf("sqlite: %w: %w", ErrNotReading, err)
	case errors.Is(err, errStopped) || errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil:
		return s.summary, stopped(ctx, limits)
	case errors.Is(err, errPanicked) && strings.Contains(err.Error(), "out of memory"):
		return s.summary, fmt.Errorf("sqlite: the statement needs more than %d MiB of memory", queryMemory>>20)
	}
	return s.summary, fmt.Errorf("sqlite: %w", err)
}

// stopped says why a statement was.
func stopped(ctx context.Context, limits Limits) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return fmt.Errorf("sqlite: the statement was stopped after %s: %w", limits.Time, errTooLong)
	}
	return fmt.Errorf("sqlite: the statement was stopped: %w", context.Cause(ctx))
}
