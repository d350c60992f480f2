package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	fileName = "replica.db"
	lockName = "lock"
	// pageSize is SQLite's default, stated because sizes are computed from it.
	pageSize = 4096
	// walPages is the number of pages after which the log is moved into the file:
	// 32 MB, so that a page which is written often is moved once.
	walPages = 8192
	// cacheKiB is the size of the writer's page cache. historyCacheKiB is that of a writer
	// with a history: if a commit of 1,000 updates does not fit, pages are written and read
	// several times (bench/history).
	cacheKiB        = 16_000
	historyCacheKiB = 28_000
	// busyTimeout is how long a write waits for a lock on the file, which only another
	// tool that writes to it holds.
	busyTimeout = 10 * time.Second
)

// Options configure a [DB]. The zero value is a good choice.
type Options struct {
	// Key, of 32 bytes, encrypts objects by AES-GCM; see [KeyFromFile] and
	// [KeyFromEnvironment]. Names stay readable, and there are no tables for SQL.
	Key []byte
	// GroupDelay is how long changes are collected before a [Sink] is written; 1 s if 0.
	// A crash loses the changes of this time, and the source sends them again.
	GroupDelay time.Duration
	// GroupSize is the number of changed keys that cause a write at once; 4,096 if 0.
	GroupSize int
	// LogLimit is the largest size in bytes of the log beside the file while a reader
	// keeps it from being emptied; 64 MiB if 0. Beyond it nothing is written until the
	// reader ends.
	LogLimit int64
	// History says which past states of the collections are kept; none if it is not set.
	History History
	// Logger gets rebuilds of files, and disk errors; slog.Default if nil.
	Logger *slog.Logger

	// vfs is the file system, for tests with faults.
	vfs string
}

func (o Options) withDefaults() Options {
	if o.GroupDelay <= 0 {
		o.GroupDelay = time.Second
	}
	if o.GroupSize <= 0 {
		o.GroupSize = 4096
	}
	if o.LogLimit <= 0 {
		o.LogLimit = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// DB is a directory with one SQLite file, which holds any number of collections, so
// that SQL can join them. One process has it open at a time; others may read the file
// with any tool.
//
// One connection writes; readers have their own and never wait for it.
type DB struct {
	dir  string
	opts Options
	lock *sqlite3.Conn

	// mu is held while the file is written.
	mu     sync.Mutex
	writer *sqlite3.Conn
	// file is the writer's; swept says that the unused bytes of its pages were cleared.
	file  *scrubbedFile
	swept bool
	// keys are set when the file is first opened, and stay.
	keys *fileKeys
	// epoch counts the files: it grows when a new file replaces a damaged one.
	epoch       int
	closed      bool
	collections map[string]*collection
	// sinks holds the flush function of each sink.
	sinks    map[any]func() error
	log      fileLog
	failures atomic.Int64

	pool readers
	// note is why the existing file could not be used, empty if it could.
	note string
}

// Open opens a directory, and creates it if it does not exist. It fails if another
// process has it open, if a newer Tarn wrote it, if it belongs to another user, or if it
// cannot be written. A damaged file is built again.
func Open(dir string, opts Options) (*DB, error) {
	db := &DB{dir: dir, opts: opts.withDefaults(), collections: map[string]*collection{}, sinks: map[any]func() error{}}
	if opts.Key != nil && len(opts.Key) != keySize {
		return nil, fmt.Errorf("sqlite: the key has %d bytes; AES-256 needs %d", len(opts.Key), keySize)
	}
	if err := opts.History.validate(); err != nil {
		return nil, err
	}
	if err := prepareDirectory(dir); err != nil {
		return nil, err
	}
	var err error
	if db.lock, err = lockDirectory(dir); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := first(removeAside(dir), removeRepair(dir), db.openFile()); err != nil {
		return nil, first(err, db.lock.Close())
	}
	db.pool.open = db.openReader
	return db, nil
}

// Dir is the directory.
func (db *DB) Dir() string { return db.dir }

// Encrypted reports whether there is a key: then SQL has no tables of objects.
func (db *DB) Encrypted() bool { return db.opts.Key != nil }

func (db *DB) path() string { return filepath.Join(db.dir, fileName) }

// openFile opens the file for writing. It replaces a file that is damaged, or that has
// an outdated format.
func (db *DB) openFile() error {
	err := db.tryFile()
	if err != nil {
		db.note = "the file is built again: " + err.Error()
	}
	switch {
	case damaged(err):
		err = db.removeDamaged(err)
	case errors.Is(err, errOutdated):
		err = db.discard(err)
	default:
		return err
	}
	if err != nil {
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
	if err := withoutPanic(func() error { return db.setUp(conn) }); err != nil {
		_ = closeAll(conn) // nothing was written
		return db.explain("open", err)
	}
	// SQLite creates the log when it switches the file to WAL mode.
	if err := db.touchFiles(); err != nil {
		return first(err, closeAll(conn))
	}
	db.writer = conn
	return nil
}

// touchFiles creates the files before SQLite does, so that other users cannot read
// them.
func (db *DB) touchFiles() error {
	for _, suffix := range suffixes {
		if err := touch(db.path() + suffix); err != nil {
			return fmt.Errorf("sqlite: %s cannot be written: %w", db.dir, err)
		}
	}
	return nil
}

// closeAll closes a connection with its statements.
func closeAll(conn *sqlite3.Conn) error {
	return withoutPanic(func() error {
		for _, stmt := range slices.Collect(conn.Stmts()) {
			_ = withoutPanic(stmt.Close) // it repeats the last error
		}
		return conn.Close()
	})
}

// errPanicked says that SQLite panicked: the library does so without memory, or because
// of a damaged file.
var errPanicked = errors.New("the database gave up")

// withoutPanic turns a panic into an error.
func withoutPanic(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanicked, v)
		}
	}()
	return do()
}

// setUp configures a connection that writes, and creates the tables of a new file.
func (db *DB) setUp(conn *sqlite3.Conn) error {
	if err := distrust(conn); err != nil {
		return err
	}
	empty, err := db.checkFormat(conn)
	if err != nil {
		return err
	}
	for _, pragma := range []string{
		fmt.Sprintf("page_size=%d", pageSize), "journal_mode=WAL", "synchronous=NORMAL",
		fmt.Sprintf("wal_autocheckpoint=%d", walPages), fmt.Sprintf("journal_size_limit=%d", db.opts.LogLimit),
		cacheSize(cacheKiB), "temp_store=MEMORY", "foreign_keys=OFF",
		// Deleted content is overwritten: it may be secret.
		"secure_delete=ON",
	} {
		if err := conn.Exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	if empty {
		return db.create(conn)
	}
	// A killed process may have left deleted content in the log: empty it. Later it is
	// emptied once more, and the file is swept.
	db.log.written(db)
	if err := db.log.empty(conn); err != nil && !errors.Is(err, errLogBusy) {
		return err
	}
	return db.convertHistories(conn)
}

func cacheSize(kib int) string { return fmt.Sprintf("cache_size=-%d", kib) }

// distrust configures a connection for a file that others may have made: no triggers, no
// views in place of tables, no values that are longer than objects.
func distrust(conn *sqlite3.Conn) error {
	conn.Limit(sqlite3.LIMIT_LENGTH, largestObject+largestObject/4)
	for op, on := range map[sqlite3.DBConfig]bool{
		sqlite3.DBCONFIG_DEFENSIVE: true, sqlite3.DBCONFIG_TRUSTED_SCHEMA: false,
		sqlite3.DBCONFIG_ENABLE_TRIGGER: false, sqlite3.DBCONFIG_ENABLE_VIEW: false,
	} {
		if _, err := conn.Config(op, on); err != nil {
			return err
		}
	}
	return nil
}

// first returns the first error: with a damaged file every step of a setup fails in the
// same way.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) connect(flags sqlite3.OpenFlag) (*sqlite3.Conn, error) {
	name, id := fileURI(db.path()), ""
	switch {
	case flags&sqlite3.OPEN_READWRITE != 0:
		var parameters string
		id, parameters = scrubbing.parameters(db.opts.vfs)
		name += parameters
	case db.opts.vfs != "":
		name += "?vfs=" + db.opts.vfs
	}
	conn, err := sqlite3.OpenFlags(name, flags|sqlite3.OPEN_URI)
	if file := scrubbing.take(id); file != nil {
		db.file, db.swept = file, false
	}
	if err != nil {
		return nil, db.explain("open", err)
	}
	if err := conn.BusyTimeout(busyTimeout); err != nil {
		return nil, first(db.explain("open", err), conn.Close())
	}
	return conn, nil
}

func (db *DB) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %s %s: %w", doing, db.path(), err)
}

// Close writes pending changes and releases the directory.
func (db *DB) Close() error {
	all := []error{db.Flush()}
	db.log.stop()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	clear(db.sinks)
	db.pool.close()
	if db.writer != nil {
		all = append(all, db.explain("close", closeAll(db.writer)))
		db.writer = nil
	}
	return errors.Join(append(all, db.lock.Close())...)
}

// transact makes changes in one transaction. mu is held.
func (db *DB) transact(do func(conn *sqlite3.Conn) error) error {
	conn := db.writer
	err := withoutPanic(func() (err error) {
		if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = conn.Exec("COMMIT")
			}
			if err != nil && !conn.GetAutocommit() {
				err = first(err, conn.Exec("ROLLBACK"))
			}
		}()
		return do(conn)
	})
	if err != nil {
		db.failures.Add(1)
		return err
	}
	db.log.written(db)
	return nil
}

// usable returns why the file cannot be written, after it has tried to reopen it.
func (db *DB) usable() error {
	switch {
	case db.closed:
		return fmt.Errorf("sqlite: %s has been closed", db.dir)
	case db.writer == nil:
		return db.reopen()
	}
	return nil
}

// logEvent logs what happened to the files.
func (db *DB) logEvent(level slog.Level, text string, args ...any) {
	db.opts.Logger.Log(context.Background(), level, text, append([]any{"dir", db.dir}, args...)...)
}
