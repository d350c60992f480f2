package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// errBadRow says that a row differs from what was written.
var errBadRow = errors.New("a stored object is damaged")

// errRebuilt says that the file was damaged, and the new one is empty.
var errRebuilt = fmt.Errorf("the file on disk was built again: %w", tarn.ErrSinkEmpty)

// damaged reports whether an error means that the file itself is damaged, and not only
// that an operation failed. A good file violates no constraint, has no value that is too
// long, and does not make SQLite panic.
func damaged(err error) bool {
	for _, sign := range []error{
		sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.IOERR_CORRUPTFS, sqlite3.IOERR_SHORT_READ, sqlite3.CONSTRAINT, sqlite3.TOOBIG, sqlite3.MISMATCH,
		errBadRow, errSchema, errPanicked,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// removeDamaged removes a damaged file, and leaves a report of its defects. No
// connection has it open for writing.
//
// Why not keep the file for inspection: it would keep its content, Secrets too, after
// those were rotated, deleted, switched off or encrypted. It is a copy, and the report
// has the findings.
func (db *DB) removeDamaged(cause error) error {
	report, err := writeReport(db.dir, db.opts.Key, cause)
	if err != nil {
		db.logEvent(slog.LevelWarn, "no report of the damage could be written", "err", err)
	}
	db.logEvent(slog.LevelError, "the file on disk is damaged: it is removed and built again from the source", "cause", cause, "report", report)
	if err := db.remove(); err != nil {
		return fmt.Errorf("sqlite: %s is damaged (%w) and cannot be removed: %w", db.path(), cause, err)
	}
	return nil
}

// discard removes an undamaged file that cannot be used: it has an outdated format, or
// was written with another key. It may hold unencrypted content that is now encrypted.
func (db *DB) discard(cause error) error {
	db.logEvent(slog.LevelWarn, "the file on disk is built again from the source", "cause", cause)
	if err := db.remove(); err != nil {
		return fmt.Errorf("sqlite: %s is of no use (%w) and cannot be removed: %w", db.path(), cause, err)
	}
	return nil
}

// remove removes the file with its log, and the damaged files that older versions kept.
func (db *DB) remove() error {
	return errors.Join(remove(db.path()), remove(db.path()+"-wal"), remove(db.path()+"-shm"), removeAside(db.dir))
}

// rescue replaces a file that was found damaged while in use.
func (db *DB) rescue(cause error) error {
	if db.writer != nil {
		_ = closeAll(db.writer) // the file is damaged: the error does not matter
		db.writer = nil
	}
	if err := db.removeDamaged(cause); err != nil {
		return err
	}
	return db.reopen()
}

// reopen opens the file when none is open, with all collections or not at all. It may be
// another file than before: then everything must be written again, and readers close the
// old one.
func (db *DB) reopen() error {
	err := db.openFile()
	db.epoch++
	db.pool.renew()
	if err != nil {
		return err
	}
	if err := db.resumeCollections(); err != nil {
		_ = closeAll(db.writer) // nothing was written
		db.writer = nil
		return err
	}
	return nil
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
