package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	// emptyAfter is how long after a write the log is moved into the file and emptied:
	// until then it has what was deleted and changed. Once a minute, what is written
	// all the time is moved as often as without.
	emptyAfter = time.Minute
	// emptyTimeout is how long readers are waited for; writers wait behind it.
	emptyTimeout = 20 * time.Millisecond
)

// ErrLogFull says that nothing is written, because somebody who reads the file keeps
// its log from being emptied.
var ErrLogFull = errors.New("the log is full")

// fileLog looks after SQLite's write-ahead log.
//
// SQLite moves the log into the file by itself, but starts over only if nobody reads
// at that moment, and leaves what it had in it. So a reader that stays makes it grow,
// and what was deleted stays readable. The log is therefore emptied a minute after a
// write, and at its bound nothing is written any more.
type fileLog struct {
	mu    sync.Mutex
	timer *time.Timer
	// running is held while the timer's function runs.
	running sync.WaitGroup
	stopped bool
	// inTheWay says that the log could not be emptied, and that this was told.
	inTheWay bool
}

// written has the log emptied in a while.
func (l *fileLog) written(db *DB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil || l.stopped {
		return
	}
	l.running.Add(1)
	l.timer = time.AfterFunc(emptyAfter, func() {
		defer l.running.Done()
		l.mu.Lock()
		l.timer = nil
		l.mu.Unlock()
		db.emptyLog()
	})
}

// stop ends it.
func (l *fileLog) stop() {
	l.mu.Lock()
	l.stopped = true
	if l.timer != nil && l.timer.Stop() {
		l.running.Done()
	}
	l.timer = nil
	l.mu.Unlock()
	l.running.Wait()
}

// empty moves the log into the file and empties it. It does not wait for readers:
// errLogBusy says that there are some.
func (l *fileLog) empty(conn *sqlite3.Conn) error {
	if err := conn.BusyTimeout(emptyTimeout); err != nil {
		return err
	}
	busy, err := number(conn, "PRAGMA wal_checkpoint(TRUNCATE)")
	if errors.Is(err, sqlite3.BUSY) {
		busy, err = 1, nil
	}
	return errors.Join(err, conn.BusyTimeout(busyTimeout), busyError(busy))
}

// errLogBusy says that somebody reads from the log.
var errLogBusy = errors.New("somebody reads from it")

func busyError(busy int64) error {
	if busy == 0 {
		return nil
	}
	return errLogBusy
}

// emptyLog empties the log, now or, if there are readers, later.
func (db *DB) emptyLog() {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed || db.writer == nil {
		return
	}
	err := withoutPanic(func() error { return inTurn(db.log.empty(db.writer), db.sweepFile) })
	if err == nil {
		return
	}
	db.log.written(db)
	if !errors.Is(err, errLogBusy) {
		db.failures.Add(1)
		db.tell(slog.LevelWarn, "the log could not be moved into the file: it is tried again", "err", err)
	}
}

// erase empties the log after something was dropped. mu is held. If a reader is in the
// way, that is done when it is gone.
func (db *DB) erase() {
	if err := withoutPanic(func() error { return db.log.empty(db.writer) }); err != nil {
		db.tell(slog.LevelWarn, "what was removed stays in the log for now", "err", err)
	}
}

// room says whether there is room for one more transaction in the log, and tries to
// make it. mu is held.
func (db *DB) room() error {
	size := fileSize(db.path() + "-wal")
	if size > db.opts.LogLimit {
		if err := withoutPanic(func() error { return db.log.empty(db.writer) }); err != nil && !errors.Is(err, errLogBusy) {
			return db.explain("empty the log of", err)
		}
		size = fileSize(db.path() + "-wal")
	}
	full := size > db.opts.LogLimit
	switch {
	case full && !db.log.inTheWay:
		db.tell(slog.LevelError, "a reader keeps the log of the file from being emptied: nothing is written to disk until it is gone", "bytes", size, "limit", db.opts.LogLimit)
	case !full && db.log.inTheWay:
		db.tell(slog.LevelInfo, "the reader is gone: the disk is written again")
	}
	db.log.inTheWay = full
	if !full {
		return nil
	}
	db.failures.Add(1)
	return fmt.Errorf("sqlite: %s: %w: it has %d MiB, more than the %d that are allowed, and a tool that reads the file keeps it from being emptied; nothing is written until that has ended",
		db.path(), ErrLogFull, size>>20, db.opts.LogLimit>>20)
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Stats are figures of a directory.
type Stats struct {
	// Bytes is how long the file is, LogBytes its log.
	Bytes, LogBytes int64
	// Failures counts the transactions that could not be written, of all collections.
	Failures int64
}

// Stats gives figures of the directory at this moment.
func (db *DB) Stats() Stats {
	return Stats{Bytes: fileSize(db.path()), LogBytes: fileSize(db.path() + "-wal"), Failures: db.failures.Load()}
}
