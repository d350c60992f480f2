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

// Reader reads a directory that another process may be writing meanwhile. It takes
// no lock that the writer would meet, and writes nothing. Any number of goroutines
// may use it; they take turns.
type Reader struct {
	path string
	key  []byte

	mu     sync.Mutex
	conn   *sqlite3.Conn
	keys   *fileKeys
	opened fs.FileInfo
}

// Holding is what a directory has of a collection.
type Holding struct {
	Collection
	// Schema is that of the codec which wrote it.
	Schema string
	// Label is the caller's, see [Store.SetLabel].
	Label   string
	Version tarn.Version
	// LastContact is when the source was last heard before that state was written.
	LastContact time.Time
	Objects     int
	// Whole says that everything is there which belongs to the version.
	Whole bool

	id int64
}

// OpenReader looks into a directory. It fails if there is no replica in it, if it was
// written by a newer Tarn, or if it was encrypted with another key than this one,
// which is nil for none.
func OpenReader(dir string, key []byte) (*Reader, error) {
	v := &Reader{path: filepath.Join(dir, fileName), key: key}
	if err := v.with(context.Background(), func(*sqlite3.Conn) error { return nil }); err != nil {
		return nil, err
	}
	return v, nil
}

// Close lets the file go.
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

// with lends the connection, to the file that has the name now: the writer may
// have built it anew.
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
	err = first(err, v.close()) // which may be in the midst of something
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

// errNoSharedMemory says that a file can only be read as one that nobody writes.
var errNoSharedMemory = errors.New("it is on a medium that is read-only")

// probeReading looks whether a file can be read beside who writes it. SQLite keeps a
// file beside it by which readers and writer know of each other. Where that cannot be
// made, because the directory is on a medium that is read-only, and nothing is left
// in a log, nobody writes it. What else is wrong is told when it is read.
func probeReading(conn *sqlite3.Conn, path string) error {
	_, err := number(conn, "SELECT count(*) FROM sqlite_schema")
	keepToUs(path)
	if !errors.Is(err, sqlite3.READONLY) && !errors.Is(err, sqlite3.CANTOPEN) {
		return nil
	}
	if log, missing := os.Stat(path + "-wal"); missing == nil && log.Size() > 0 {
		return err
	}
	return errNoSharedMemory
}

// checkReadable says whether a file can be read as it is, by whom it does not
// belong to.
func checkReadable(conn *sqlite3.Conn, key []byte) (*fileKeys, error) {
	keys, err := readFormat(conn, key)
	if errors.Is(err, errOutdated) {
		return nil, fmt.Errorf("%w: whoever keeps it will build it anew when started", err)
	}
	return keys, err
}

// noReplica says that a directory is none of ours.
func noReplica(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sqlite: %s holds no replica: it has no %s", dir, fileName)
	}
	return fmt.Errorf("sqlite: %s cannot be read: %w", dir, err)
}

const holdings = "SELECT " + collectionColumns + " FROM tarn_collections"

// Holdings are the collections that the directory has.
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

// Holdings are the collections that the directory has. They are read from the file:
// what still waits to be written is not in them.
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
		LastContact: r.state.heard, Objects: int(r.state.objects), Whole: r.state.whole, id: r.id,
	}
	h.Identity, h.Schema, _ = strings.Cut(r.identity, "\n")
	h.Schema, _, _ = strings.Cut(h.Schema, "\n")
	return h, err
}

// ErrNoCollection says that a directory does not have a collection, or not any
// more.
var ErrNoCollection = errors.New("there is no such collection")

// Entry is an object as it is stored.
type Entry struct {
	Key tarn.Key
	// Sum is a checksum, by which changes are told.
	Sum Sum

	stored []byte
	packer *packer
}

// Bytes are the object's, as the codec wrote them.
func (e Entry) Bytes() ([]byte, error) { return e.packer.unpack(e.Key, e.Sum, e.stored, nil) }

// Walk goes through one state of a collection, and says which that is. An entry is
// good until each returns.
func (v *Reader) Walk(ctx context.Context, collection string, each func(Entry) error) (h Holding, err error) {
	err = v.with(ctx, func(conn *sqlite3.Conn) (err error) {
		if err := conn.Exec("BEGIN"); err != nil {
			return err
		}
		defer func() { err = first(err, conn.Exec("COMMIT")) }()
		if h, err = v.find(conn, collection); err != nil {
			return err
		}
		p := &packer{owner: collection, keys: v.keys}
		dictionary, err := readDictionary(conn, h.id)
		if err == nil {
			err = p.use(dictionary)
		}
		if err != nil {
			return err
		}
		objects := fmt.Sprintf("tarn_objects_%d", h.id)
		return query(conn, "SELECT key, sum, body FROM "+objects+" WHERE "+shownIf(h.id), func(row *sqlite3.Stmt) error {
			return each(Entry{Key: tarn.Key(row.ColumnText(0)), Sum: sumOf(row.ColumnRawBlob(1)), stored: row.ColumnRawBlob(2), packer: p})
		})
	})
	return h, err
}

// State is which state of a collection the file has.
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
