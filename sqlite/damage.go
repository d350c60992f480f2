package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// errBadRow says that a row is not what was written.
var errBadRow = errors.New("a stored object is damaged")

// errRebuilt says that the file was moved aside, and the new one is empty.
var errRebuilt = errors.New("the file on disk was built anew and is empty")

// damaged says whether an error means that the file itself is wrong, and not only
// that something could not be done with it: pages and rows have checksums.
func damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) ||
		errors.Is(err, sqlite3.IOERR_DATA) || errors.Is(err, sqlite3.IOERR_CORRUPTFS) ||
		errors.Is(err, sqlite3.IOERR_SHORT_READ) || errors.Is(err, errBadRow)
}

// maxAside is how many damaged files are kept to be looked at. A disk that
// damages one each hour must not be filled by them too.
const maxAside = 3

// moveAside gives the file another name, so that it can be looked at, and makes
// room for a new one. Nobody has it open for writing.
func (db *DB) moveAside(cause error) error {
	aside := fmt.Sprintf("%s.damaged-%s", db.path(), time.Now().UTC().Format("20060102T150405.000"))
	db.log(slog.LevelError, "the file on disk cannot be used: it is moved aside and built anew from the source", "cause", cause, "aside", aside)
	if err := os.Rename(db.path(), aside); err != nil {
		return fmt.Errorf("sqlite: %s is damaged (%w) and cannot be moved aside: %w", db.path(), cause, err)
	}
	// A log belongs to the file that it was written for, and to no other.
	err := errors.Join(rename(db.path()+"-wal", aside+"-wal"), remove(db.path()+"-shm"))
	if err != nil {
		return fmt.Errorf("sqlite: %s was moved aside, but not its log: %w", db.path(), err)
	}
	db.forgetAside()
	return nil
}

// discard removes a file that is whole, but of no use: its format was given up,
// or it was written with another key. It is not kept, since it may hold in the
// clear what is now to be encrypted.
func (db *DB) discard(cause error) error {
	db.log(slog.LevelWarn, "the file on disk is built anew from the source", "cause", cause)
	err := errors.Join(remove(db.path()), remove(db.path()+"-wal"), remove(db.path()+"-shm"))
	if err != nil {
		return fmt.Errorf("sqlite: %s is of no use (%w) and cannot be removed: %w", db.path(), cause, err)
	}
	return nil
}

// rescue moves a file aside that turned out to be damaged while it was in use.
func (db *DB) rescue(cause error) error {
	if db.writer != nil {
		_ = closeAll(db.writer) // it is damaged: what the end of it says does not matter
		db.writer = nil
	}
	if err := db.moveAside(cause); err != nil {
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

func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil && !os.IsNotExist(err) {
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

// forgetAside removes all but the latest files that were moved aside.
func (db *DB) forgetAside() {
	entries, err := os.ReadDir(db.dir)
	if err != nil {
		return
	}
	var aside []string // in the order of their names, which is that of time
	for _, e := range entries {
		if isAside(e.Name()) {
			aside = append(aside, e.Name())
		}
	}
	for _, name := range aside[:max(len(aside)-maxAside, 0)] {
		_ = remove(filepath.Join(db.dir, name)) // it is only there to be looked at
		_ = remove(filepath.Join(db.dir, name+"-wal"))
	}
}

func isAside(name string) bool {
	return strings.HasPrefix(name, fileName+".damaged-") && !strings.HasSuffix(name, "-wal")
}
