package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// errBadRow says that a row is not what was written.
var errBadRow = errors.New("a stored object is damaged")

// errRebuilt says that the file was damaged, and the new one is empty.
var errRebuilt = fmt.Errorf("the file on disk was built anew: %w", tarn.ErrSinkEmpty)

// damaged says whether an error means that the file itself is wrong, and not only
// that something could not be done with it. A file that is sound violates no
// constraint, has no value that is too long, and does not make SQLite panic.
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

// giveUp removes a file that is damaged, and leaves a report of what is wrong with
// it. Nobody has it open for writing.
//
// Why not keep the file to be looked at: it would keep what it holds, Secrets too,
// after those were rotated, deleted, switched off or encrypted. It is a copy, and the
// report says what there is to see.
func (db *DB) giveUp(cause error) error {
	report, err := writeReport(db.dir, db.opts.Key, cause)
	if err != nil {
		db.tell(slog.LevelWarn, "no report of the damage could be written", "err", err)
	}
	db.tell(slog.LevelError, "the file on disk is damaged: it is removed and built anew from the source", "cause", cause, "report", report)
	if err := db.remove(); err != nil {
		return fmt.Errorf("sqlite: %s is damaged (%w) and cannot be removed: %w", db.path(), cause, err)
	}
	return nil
}

// discard removes a file that is whole, but of no use: its format was given up,
// or it was written with another key. It may hold in the clear what is now to be
// encrypted.
func (db *DB) discard(cause error) error {
	db.tell(slog.LevelWarn, "the file on disk is built anew from the source", "cause", cause)
	if err := db.remove(); err != nil {
		return fmt.Errorf("sqlite: %s is of no use (%w) and cannot be removed: %w", db.path(), cause, err)
	}
	return nil
}

// remove removes the file with its log, and what older versions kept of damaged ones.
func (db *DB) remove() error {
	return errors.Join(remove(db.path()), remove(db.path()+"-wal"), remove(db.path()+"-shm"), removeAside(db.dir))
}

// rescue takes another file in the place of one that turned out to be damaged while it
// was in use.
func (db *DB) rescue(cause error) error {
	if db.writer != nil {
		_ = closeAll(db.writer) // it is damaged: what the end of it says does not matter
		db.writer = nil
	}
	if err := db.giveUp(cause); err != nil {
		return err
	}
	return db.reopen()
}

// reopen opens the file when none is open, with all collections or not at all. It
// may be another file than before, so that everything is to be written, and those
// who read the one before let it go.
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
