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

// Limits bound the cost of a statement. The zero value is a good choice.
type Limits struct {
	// Rows is the largest number of rows; 10,000 if 0.
	Rows int
	// Bytes is the largest total size of their values; 64 MiB if 0.
	Bytes int
	// Time is how long the statement may take, including the wait for its turn; 10 s if
	// 0. A statement that does not stop by then is stopped by force a quarter of that
	// later, at most a second.
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

// A RowWriter gets the rows of a statement while they are computed, so that the whole
// result need not fit into memory.
type RowWriter interface {
	// Begin is called once, before the first row, or at the end of an empty result.
	Begin(Head) error
	// Row is called for each row with a value for each column: nil, int64, float64,
	// [Text] or []byte. Text and bytes are in SQLite's memory: they are valid until
	// Row returns. An error ends the statement and is returned unchanged.
	Row(values []any) error
}

// Text is a text in SQLite's memory.
type Text []byte

// Head describes a result before its first row.
type Head struct {
	// Columns holds the names of the columns.
	Columns []string
	// Read holds the collections that the statement reads, by name, in the same state
	// as the rows.
	Read []TableState
	// Gaps are those that the answer touches, if the statement reads the past.
	Gaps []TableGap
}

// Summary says how a statement ended.
type Summary struct {
	// Rows is the number of rows written.
	Rows int
	// Cut says that there were more, beyond the limits.
	Cut  bool
	Took time.Duration
}

// Result is a whole result in memory.
type Result struct {
	Head
	// Rows have a value for each column: nil, int64, float64, string or []byte.
	Rows [][]any
	// Cut says that there were more, beyond the limits.
	Cut  bool
	Took time.Duration
}

var (
	// ErrNotReading says that a statement does not only read.
	ErrNotReading = errors.New("only reading is allowed here")
	// ErrTooMany says that a statement did not get its turn in time, because too many
	// others are running.
	ErrTooMany = errors.New("too many statements are running")

	errTooLong = errors.New("it took too long")
)

// Query runs a statement on the file of a directory, whether a process has it open or
// not, and returns the whole result. The guarantees are those of [Stream].
func Query(ctx context.Context, dir, sql string, limits Limits, args ...any) (*Result, error) {
	return gather(ctx, dir, Moment{}, sql, limits, args)
}

// gather runs a statement and returns the whole result.
func gather(ctx context.Context, dir string, at Moment, sql string, limits Limits, args []any) (*Result, error) {
	limits = limits.withDefaults()
	if most := budgetBytes - queryMemory; int64(limits.Bytes) > most {
		return nil, fmt.Errorf("sqlite: an answer of up to %d MiB cannot be gathered: Limits.Bytes may be %d MiB at most; Stream has no such bound", limits.Bytes>>20, most>>20)
	}
	result := &Result{}
	summary, err := stream(ctx, dir, at, sql, limits, gatherer{result}, int64(limits.Bytes), args)
	if err != nil {
		return nil, err
	}
	result.Cut, result.Took = summary.Cut, summary.Took
	return result, nil
}

// gatherer is the writer that builds a [Result].
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

// Stream runs a statement on the file of a directory, whether a process has it open or
// not, and passes on the rows one by one. The statement sees one state of all
// collections, which [Head] describes.
//
//   - It can only read. An authorizer refuses everything else when the statement is
//     compiled. A read-only connection is not enough: it can still ATTACH another file,
//     and a PRAGMA can undo PRAGMA query_only.
//   - It ends at its time limit, or when ctx ends, even in mid-computation; see
//     [stopper].
//   - SQLite may use 128 MiB for it, and all statements of the process share one
//     budget; see [budget].
//   - A panic of the writer propagates to the caller.
func Stream(ctx context.Context, dir, sql string, limits Limits, to RowWriter, args ...any) (Summary, error) {
	return stream(ctx, dir, Moment{}, sql, limits.withDefaults(), to, 0, args)
}

// Query runs a statement on this directory; see the function [Query]. It does not see
// pending changes: call [DB.Flush] before it where that matters.
func (db *DB) Query(ctx context.Context, sql string, limits Limits, args ...any) (*Result, error) {
	return Query(ctx, db.dir, sql, limits, args...)
}

// Stream runs a statement on this directory; see the function [Stream].
func (db *DB) Stream(ctx context.Context, sql string, limits Limits, to RowWriter, args ...any) (Summary, error) {
	return Stream(ctx, db.dir, sql, limits, to, args...)
}

// stream runs a statement. held is how many bytes of the result the writer keeps.
func stream(ctx context.Context, dir string, at Moment, sql string, limits Limits, to RowWriter, held int64, args []any) (Summary, error) {
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
	s := &statement{limits: limits, to: to, past: past{at: at}}
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

// stopped returns the error of a statement that was stopped.
func stopped(ctx context.Context, limits Limits) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return fmt.Errorf("sqlite: the statement was stopped after %s: %w", limits.Time, errTooLong)
	}
	return fmt.Errorf("sqlite: the statement was stopped: %w", context.Cause(ctx))
}
