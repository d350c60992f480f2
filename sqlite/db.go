package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	fileName = "replica.db"
	lockName = "lock"
	// pageSize is SQLite's own choice, written down because the format's checksums
	// depend on it.
	pageSize = 4096
	// walPages is after how many pages the log is moved into the file: 32 MB, so
	// that a page which is written often is moved once.
	walPages = 8192
)

// Options shape a [DB]. The zero value is a good choice.
type Options struct {
	// Key, of 32 bytes, encrypts objects by AES-GCM; see [KeyFromFile] and
	// [KeyFromEnvironment]. Names stay readable, and there are no tables for SQL.
	Key []byte
	// GroupDelay is for how long changes are collected before a store behind
	// another one is written; 1 s if 0. It is what a crash can cost of what the
	// source will tell again anyway.
	GroupDelay time.Duration
	// GroupSize is how many changed keys make it write at once; 4,096 if 0.
	GroupSize int
	// Logger is told when a file was moved aside or built anew, and of disk
	// trouble; slog.Default if nil.
	Logger *slog.Logger

	// vfs is the file system, for tests that let it fail.
	vfs string
}

func (o Options) withDefaults() Options {
	if o.GroupDelay <= 0 {
		o.GroupDelay = time.Second
	}
	if o.GroupSize <= 0 {
		o.GroupSize = 4096
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// DB is a directory with one SQLite file, in which any number of collections are
// kept side by side, so that SQL can join them. One process has it open at a time;
// others may read the file.
//
// One connection writes; readers have their own and never wait for it.
type DB struct {
	dir  string
	opts Options
	seal *seal
	lock *sqlite3.Conn

	// mu is held while the file is written.
	mu     sync.Mutex
	writer *sqlite3.Conn
	// epoch counts the files: it moves on when one was moved aside.
	epoch int
	// dropped says that the log still has what was removed.
	dropped     bool
	closed      bool
	collections map[string]*collection
	behind      []follower

	pool readers
}

// follower is a store behind another one.
type follower interface {
	flush() error
	close() error
}

// Open opens a directory, and makes it if it is not there. It fails if another
// process has it open, if a newer Tarn wrote it, or if it cannot be written; what
// is damaged is moved aside.
func Open(dir string, opts Options) (*DB, error) {
	db := &DB{dir: dir, opts: opts.withDefaults(), collections: map[string]*collection{}}
	var err error
	if opts.Key != nil {
		if db.seal, err = newSeal(opts.Key); err != nil {
			return nil, err
		}
	}
	if err := prepareDirectory(dir); err != nil {
		return nil, err
	}
	if db.lock, err = lockDirectory(dir); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.openFile(); err != nil {
		return nil, errors.Join(err, db.lock.Close())
	}
	db.pool.open = db.openReader
	return db, nil
}

// Dir is the directory.
func (db *DB) Dir() string { return db.dir }

// Encrypted says that there is a key: then SQL has no tables of objects.
func (db *DB) Encrypted() bool { return db.seal != nil }

func (db *DB) path() string { return filepath.Join(db.dir, fileName) }

// openFile opens the file for writing. One that is damaged, or one that
// cannot be read any more, makes room for a new one.
func (db *DB) openFile() error {
	err := db.tryFile()
	switch {
	case damaged(err):
		if err := db.moveAside(err); err != nil {
			return err
		}
	case errors.Is(err, errOutdated):
		if err := db.discard(err); err != nil {
			return err
		}
	default:
		return err
	}
	return db.tryFile()
}

func (db *DB) tryFile() error {
	if err := db.touchFiles(); err != nil {
		return err
	}
	conn, err := db.connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	if err := db.setUp(conn); err != nil {
		return errors.Join(db.explain("open", err), closeAll(conn))
	}
	// A log is made anew when a file becomes one that has a log.
	if err := db.touchFiles(); err != nil {
		return errors.Join(err, closeAll(conn))
	}
	db.writer = conn
	return nil
}

// touchFiles makes the files before SQLite does, so that nobody else can read
// them.
func (db *DB) touchFiles() error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := touch(db.path() + suffix); err != nil {
			return fmt.Errorf("sqlite: %s cannot be written: %w", db.dir, err)
		}
	}
	return nil
}

// closeAll closes a connection with its statements.
func closeAll(conn *sqlite3.Conn) error {
	for _, stmt := range slices.Collect(conn.Stmts()) {
		_ = withoutPanic(stmt.Close) // it tells again how it last went
	}
	return conn.Close()
}

// errPanicked says that SQLite did: by that it tells that there is no memory.
var errPanicked = errors.New("the database gave up")

// withoutPanic makes an error of a panic.
func withoutPanic(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanicked, v)
		}
	}()
	return do()
}

// setUp brings a connection that writes, and a new file, into shape.
func (db *DB) setUp(conn *sqlite3.Conn) error {
	if err := conn.EnableChecksums("main"); err != nil {
		return err
	}
	for _, pragma := range []string{
		fmt.Sprintf("page_size=%d", pageSize), "journal_mode=WAL", "synchronous=NORMAL",
		fmt.Sprintf("wal_autocheckpoint=%d", walPages), "journal_size_limit=67108864",
		"cache_size=-16000", "temp_store=MEMORY", "foreign_keys=OFF",
	} {
		if err := conn.Exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	return db.checkFormat(conn)
}

func (db *DB) connect(flags sqlite3.OpenFlag) (*sqlite3.Conn, error) {
	name := fileURI(db.path())
	if db.opts.vfs != "" {
		name += "?vfs=" + db.opts.vfs
	}
	conn, err := sqlite3.OpenFlags(name, flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, db.explain("open", err)
	}
	if err := conn.BusyTimeout(busyTimeout); err != nil {
		return nil, errors.Join(db.explain("open", err), conn.Close())
	}
	return conn, nil
}

// busyTimeout is how long a write waits for somebody who has the file locked, as
// only a tool that writes to it does.
const busyTimeout = 10 * time.Second

func (db *DB) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %s %s: %w", doing, db.path(), err)
}

// Flush writes what waits of all collections. Without it that is done within the
// group delay.
func (db *DB) Flush() error {
	db.mu.Lock()
	behind := slices.Clone(db.behind)
	db.mu.Unlock()
	var all []error
	for _, b := range behind {
		all = append(all, b.flush())
	}
	return errors.Join(all...)
}

// Close writes what is still to be written and lets the directory go.
func (db *DB) Close() error {
	var all []error
	for _, b := range db.leave() {
		all = append(all, b.close())
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return errors.Join(all...)
	}
	db.closed = true
	db.pool.close()
	if db.writer != nil {
		all = append(all, db.explain("close", closeAll(db.writer)))
		db.writer = nil
	}
	return errors.Join(append(all, db.lock.Close())...)
}

// leave takes those out who write from behind.
func (db *DB) leave() []follower {
	db.mu.Lock()
	defer db.mu.Unlock()
	behind := db.behind
	db.behind = nil
	return behind
}

// forget takes one of them out, and says whether it was there.
func (db *DB) forget(f follower) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	i := slices.Index(db.behind, f)
	if i >= 0 {
		db.behind = slices.Delete(db.behind, i, i+1)
	}
	return i >= 0
}

// transact makes changes in one transaction.
func (db *DB) transact(do func(conn *sqlite3.Conn) error) (err error) {
	conn := db.writer
	if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = conn.Exec("COMMIT")
		}
		if err != nil && !conn.GetAutocommit() {
			err = errors.Join(err, conn.Exec("ROLLBACK"))
		}
	}()
	return do(conn)
}

// usable says whether the file can be written, and tries to make it so.
func (db *DB) usable() error {
	switch {
	case db.closed:
		return fmt.Errorf("sqlite: %s has been closed", db.dir)
	case db.writer == nil:
		return db.reopen()
	}
	return nil
}

// log is for what happened to the files.
func (db *DB) log(level slog.Level, text string, args ...any) {
	db.opts.Logger.Log(context.Background(), level, text, append([]any{"dir", db.dir}, args...)...)
}

// touch makes a file that only we can read, and leaves one that is there.
func touch(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		_ = f.Chmod(0o600) // on file systems without modes there is nothing to do
	}
	return f.Close()
}
