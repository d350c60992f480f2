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
	// emptyAfter is the time after a write when the log is moved into the file and
	// emptied: until then it holds deleted and changed content. At once a minute, a
	// busy collection costs no additional moves.
	emptyAfter = time.Minute
	// emptyTimeout is the longest wait for readers; writers wait meanwhile.
	emptyTimeout = 20 * time.Millisecond
)

// ErrLogFull says that nothing is written, because a reader of the file keeps its log
// from being emptied.
var ErrLogFull = errors.New("the log is full")

// fileLog empties SQLite's write-ahead log and limits its size.
//
// SQLite moves the log into the file by itself, but restarts it only if there is no
// reader at that moment, and does not clear it. A long-lived reader therefore makes it
// grow, and deleted content stays readable. So the log is emptied a minute after a write,
// and at its limit writes fail.
type fileLog struct {
	mu    sync.Mutex
	timer *time.Timer
	// running is held while the timer's function runs.
	running sync.WaitGroup
	stopped bool
	// readerReported says that a reader blocks the log, and that this was logged.
	readerReported bool
}

// written schedules the emptying of the log.
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

// stop ends the timer.
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

// empty moves the log into the file and empties it. It does not wait for readers, and
// fails with errLogBusy if there are some.
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

// errLogBusy says that a connection reads from the log.
var errLogBusy = errors.New("a reader uses it")

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
		db.logEvent(slog.LevelWarn, "the log could not be moved into the file: it is tried again", "err", err)
	}
}

// erase empties the log after content was dropped. mu is held. If a reader blocks it, the
// log is emptied once the reader has ended.
func (db *DB) erase() {
	if err := withoutPanic(func() error { return db.log.empty(db.writer) }); err != nil {
		db.logEvent(slog.LevelWarn, "removed content stays in the log for now", "err", err)
	}
}

// room returns nil if the log has room for one more transaction, after it has tried to
// make room. mu is held.
func (db *DB) room() error {
	size, err := db.logSize(db.opts.LogLimit)
	if err != nil {
		return err
	}
	full := size > db.opts.LogLimit
	switch {
	case full && !db.log.readerReported:
		db.logEvent(slog.LevelError, "a reader keeps the log of the file from being emptied: nothing is written to disk until it is gone", "bytes", size, "limit", db.opts.LogLimit)
	case !full && db.log.readerReported:
		db.logEvent(slog.LevelInfo, "the reader is gone: the disk is written again")
	}
	db.log.readerReported = full
	if !full {
		return nil
	}
	db.failures.Add(1)
	return fmt.Errorf("sqlite: %s: %w: it has %d MiB, more than the %d that are allowed, and a tool that reads the file keeps it from being emptied; nothing is written until that has ended",
		db.path(), ErrLogFull, size>>20, db.opts.LogLimit>>20)
}

// logSize is the size of the log, after it has tried to empty one that is larger than limit.
func (db *DB) logSize(limit int64) (size int64, err error) {
	if size = fileSize(db.path() + "-wal"); size > limit {
		if err := withoutPanic(func() error { return db.log.empty(db.writer) }); err != nil && !errors.Is(err, errLogBusy) {
			return size, db.explain("empty the log of", err)
		}
		size = fileSize(db.path() + "-wal")
	}
	return size, nil
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Stats holds figures of a directory.
type Stats struct {
	// Bytes is the size of the file, LogBytes that of its log.
	Bytes, LogBytes int64
	// Failures counts the failed transactions of all collections.
	Failures int64
}

// Stats returns current figures of the directory.
func (db *DB) Stats() Stats {
	return Stats{Bytes: fileSize(db.path()), LogBytes: fileSize(db.path() + "-wal"), Failures: db.failures.Load()}
}
