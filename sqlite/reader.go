package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// Reader reads a directory, even while another process writes it. It never blocks the
// writer, and writes nothing. Any number of goroutines may use it; they take turns.
type Reader struct {
	path string
	key  []byte

	mu     sync.Mutex
	conn   *sqlite3.Conn
	keys   *fileKeys
	opened fs.FileInfo
}

// Holding describes a collection in a directory.
type Holding struct {
	Collection
	// Schema is that of the codec which wrote it, Tables the statements that made its
	// tables for SQL.
	Schema, Tables string
	// Label is the caller's, see [Store.SetLabel].
	Label   string
	Version tarn.Version
	// Positions are those of the sections, if there are several.
	Positions []tarn.Position
	// LastContact is the time of the last contact with the source before that state was
	// written.
	LastContact time.Time
	Objects     int
	// Whole says that the file has everything that belongs to the version.
	Whole bool

	id int64
}

// OpenReader opens a directory for reading. It fails if there is no replica in it, if a
// newer Tarn wrote it, or if it was encrypted with another key; nil means no key.
func OpenReader(dir string, key []byte) (*Reader, error) {
	v := &Reader{path: filepath.Join(dir, fileName), key: key}
	if err := v.with(context.Background(), func(*sqlite3.Conn) error { return nil }); err != nil {
		return nil, err
	}
	return v, nil
}

// Close closes the file.
func (v *Reader) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.close()
}

func (v *Reader) close() error {
	if v.conn == nil {
		return nil
	}
	err := closeAll(v.conn)
	v.conn = nil
	return err
}

// with calls a function with the connection. It reopens the file if the writer has
// replaced it.
func (v *Reader) with(ctx context.Context, read func(*sqlite3.Conn) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	info, err := os.Stat(v.path)
	if err != nil {
		return noReplica(filepath.Dir(v.path), err)
	}
	if v.conn != nil && !os.SameFile(info, v.opened) {
		_ = v.close() // it was only read
	}
	if v.conn == nil {
		if err := v.open(); err != nil {
			return fmt.Errorf("sqlite: open %s: %w", v.path, err)
		}
		v.opened = info
	}
	v.conn.SetInterrupt(ctx)
	if err = read(v.conn); err == nil {
		return nil
	}
	err = first(err, v.close()) // a statement may still be open
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("sqlite: read %s: %w", v.path, err)
}

func (v *Reader) open() error {
	conn, err := openReading(v.path)
	if err != nil {
		return err
	}
	err = withoutPanic(func() (err error) {
		err = first(distrust(conn), conn.BusyTimeout(busyTimeout), conn.Exec("PRAGMA query_only=1; PRAGMA temp_store=MEMORY"))
		if err == nil {
			v.keys, err = checkReadable(conn, v.key)
		}
		return err
	})
	if err != nil {
		return first(err, closeAll(conn))
	}
	v.conn = conn
	return nil
}

// openReading opens a file that others may write.
func openReading(path string) (*sqlite3.Conn, error) {
	conn, err := connectReading(path, false, "")
	if err != nil {
		return nil, err
	}
	err = probeReading(conn, path)
	switch {
	case err == nil:
		return conn, nil
	case !errors.Is(err, errNoSharedMemory):
		return nil, first(err, conn.Close())
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	return connectReading(path, true, "")
}

func connectReading(path string, immutable bool, parameters string) (*sqlite3.Conn, error) {
	name := fileURI(path) + "?mode=ro" + parameters
	if immutable {
		name += "&immutable=1"
	}
	return sqlite3.OpenFlags(name, sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
}

// errNoSharedMemory says that a file can only be read as one without a writer.
var errNoSharedMemory = errors.New("it is on a medium that is read-only")

// probeReading checks whether a file can be read while it is written. SQLite coordinates
// readers and writer by a file beside it. If that cannot be created, because the medium
// is read-only, and the log is empty, there is no writer. A read reports other errors.
func probeReading(conn *sqlite3.Conn, path string) error {
	_, err := number(conn, "SELECT count(*) FROM sqlite_schema")
	restrictFiles(path)
	if !errors.Is(err, sqlite3.READONLY) && !errors.Is(err, sqlite3.CANTOPEN) {
		return nil
	}
	if log, missing := os.Stat(path + "-wal"); missing == nil && log.Size() > 0 {
		return err
	}
	return errNoSharedMemory
}

// checkReadable checks whether a process that does not own the file can read it, without
// changes.
func checkReadable(conn *sqlite3.Conn, key []byte) (*fileKeys, error) {
	keys, err := readFormat(conn, key)
	if errors.Is(err, errOutdated) {
		return nil, fmt.Errorf("%w: the next start of its writer builds it again", err)
	}
	return keys, err
}

// noReplica is the error for a directory without a replica.
func noReplica(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sqlite: %s holds no replica: it has no %s", dir, fileName)
	}
	return fmt.Errorf("sqlite: %s cannot be read: %w", dir, err)
}

const holdings = "SELECT " + collectionColumns + " FROM tarn_collections"

// Holdings returns the collections of the directory.
func (v *Reader) Holdings(ctx context.Context) (all []Holding, err error) {
	err = v.with(ctx, func(conn *sqlite3.Conn) error {
		all = nil
		return query(conn, holdings+" ORDER BY name", func(row *sqlite3.Stmt) error {
			h, err := holdingOf(row, v.keys)
			all = append(all, h)
			return err
		})
	})
	return all, err
}

// Holdings returns the collections of the directory. It reads the file, without pending
// changes.
func (db *DB) Holdings() (all []Holding, err error) {
	err = db.pool.with(func(r *reader) error {
		all = nil
		return r.query(holdings+" ORDER BY name", func(row *sqlite3.Stmt) error {
			h, err := holdingOf(row, db.keys)
			all = append(all, h)
			return err
		})
	})
	return all, db.explain("read", err)
}

func holdingOf(row *sqlite3.Stmt, keys *fileKeys) (Holding, error) {
	r, err := scanCollection(row, keys)
	h := Holding{
		Collection: Collection{Name: r.name}, Label: r.label, Version: r.state.version,
		LastContact: r.state.lastContact, Objects: int(r.state.objects), Whole: r.state.whole, id: r.id,
	}
	h.Identity, h.Schema, _ = strings.Cut(r.identity, "\n")
	h.Schema, h.Tables, _ = strings.Cut(h.Schema, "\n")
	if err == nil {
		h.Positions, err = decodePositions(r.state.positions)
	}
	return h, err
}

// ErrNoCollection says that a directory does not have a collection.
var ErrNoCollection = errors.New("there is no such collection")

// Entry is a stored object.
type Entry struct {
	Key tarn.Key
	// Sum is a checksum, which detects changes.
	Sum Sum

	stored []byte
	packer *packer
}

// Bytes returns the object's bytes, as the codec wrote them.
func (e Entry) Bytes() ([]byte, error) { return e.packer.unpack(e.Key, e.Sum, e.stored, nil) }

// Walk calls each for every entry of one state of a collection, and returns which state
// that is. An entry is valid until each returns.
func (v *Reader) Walk(ctx context.Context, collection string, each func(Entry) error) (Holding, error) {
	return v.WalkPrefix(ctx, collection, "", each)
}

// WalkPrefix is Walk for the entries whose keys have a prefix.
func (v *Reader) WalkPrefix(ctx context.Context, collection string, prefix tarn.Key, each func(Entry) error) (h Holding, err error) {
	err = v.with(ctx, func(conn *sqlite3.Conn) (err error) {
		if err := conn.Exec("BEGIN"); err != nil {
			return err
		}
		defer func() { err = first(err, conn.Exec("COMMIT")) }()
		if h, err = v.find(conn, collection); err != nil {
			return err
		}
		p := &packer{owner: collection, keys: v.keys}
		dictionary, err := p.readDictionary(conn, h.id)
		if err == nil {
			err = p.use(dictionary)
		}
		if err != nil {
			return err
		}
		objects := fmt.Sprintf("tarn_objects_%d", h.id)
		return query(conn, "SELECT key, sum, body FROM "+objects+" WHERE "+shownIf(h.id)+" AND substr(key, 1, length(?1)) = ?1 AND key >= ?1", func(row *sqlite3.Stmt) error {
			return each(Entry{Key: tarn.Key(row.ColumnText(0)), Sum: sumOf(row.ColumnRawBlob(1)), stored: row.ColumnRawBlob(2), packer: p})
		}, string(prefix))
	})
	return h, err
}

// State returns the state of a collection in the file.
func (v *Reader) State(ctx context.Context, collection string) (h Holding, err error) {
	err = v.with(ctx, func(conn *sqlite3.Conn) (err error) {
		h, err = v.find(conn, collection)
		return err
	})
	return h, err
}

func (v *Reader) find(conn *sqlite3.Conn, collection string) (h Holding, err error) {
	err = query(conn, holdings+" WHERE name=?", func(row *sqlite3.Stmt) (err error) {
		h, err = holdingOf(row, v.keys)
		return err
	}, collection)
	if err == nil && h.id == 0 {
		err = fmt.Errorf("%s: %w", collection, ErrNoCollection)
	}
	return h, err
}
