package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// scrubbingVFS is the name of the file system that files are written through.
const scrubbingVFS = "tarn-scrubbing"

// scrubbing clears the unused bytes of pages on their way from the log to the file.
//
// SQLite overwrites deleted rows. But when it moves rows from page to page, it leaves
// copies in the bytes between the page's directory and its first row, and these stay
// after the rows are deleted: of some 700 values that were deleted in random order, one
// was left.
//
// Why not VACUUM: it rewrites the whole file. Why not the pages of the log: SQLite
// computes their checksums before it writes them; the log is emptied anyway.
var scrubbing = newScrubber()

type scrubber struct {
	vfs.VFSFilename

	mu   sync.Mutex
	last int
	// opened holds the files that [scrubber.take] has not fetched yet.
	opened map[string]*scrubbedFile
}

// connectionParameter identifies a connection in the name of a database, belowParameter
// names the underlying file system.
const connectionParameter, belowParameter = "connection", "below"

func newScrubber() *scrubber {
	s := &scrubber{VFSFilename: vfs.Find("").(vfs.VFSFilename), opened: map[string]*scrubbedFile{}}
	vfs.Register(scrubbingVFS, s)
	return s
}

// parameters returns the parameters for the name of a database.
func (s *scrubber) parameters(below string) (id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id = strconv.Itoa(s.last)
	return id, "?vfs=" + scrubbingVFS + "&" + connectionParameter + "=" + id + "&" + belowParameter + "=" + below
}

// take returns the file of a connection.
func (s *scrubber) take(id string) *scrubbedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.opened[id]
	delete(s.opened, id)
	return f
}

// OpenFilename opens a file.
func (s *scrubber) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	below, id := s.VFSFilename, ""
	if flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL) != 0 {
		id = name.URIParameter(connectionParameter)
		if named, ok := vfs.Find(name.URIParameter(belowParameter)).(vfs.VFSFilename); ok {
			below = named
		}
	}
	file, got, err := below.OpenFilename(name, flags)
	if err != nil || flags&vfs.OPEN_MAIN_DB == 0 {
		return file, got, err
	}
	f := &scrubbedFile{File: file}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[id] = f
	return f, got, nil
}

// scrubbedFile is a database file whose unused bytes are cleared.
type scrubbedFile struct {
	vfs.File
	page [pageSize]byte
}

// largestScrubbed is the largest file that can be scrubbed. In a larger one a page
// outside of a tree begins with the upper byte of the next page's number, which may look
// like the first byte of a tree page.
const largestScrubbed = 64 << 30

// WriteAt writes a page.
func (f *scrubbedFile) WriteAt(p []byte, at int64) (int, error) {
	if from, to := unusedBytes(p, at); isDirty(p[from:to]) {
		if size, err := f.Size(); err == nil && size < largestScrubbed {
			copy(f.page[:], p)
			clear(f.page[from:to])
			return f.File.WriteAt(f.page[:], at)
		}
	}
	return f.File.WriteAt(p, at)
}

// sweep clears the unused bytes of all pages. The caller prevents writes meanwhile.
func (f *scrubbedFile) sweep() error {
	size, err := f.Size()
	if err != nil || size >= largestScrubbed {
		return err
	}
	chunk := make([]byte, 64*pageSize)
	var none [pageSize]byte
	for at := int64(0); at < size; at += int64(len(chunk)) {
		n, err := f.ReadAt(chunk, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for i := 0; i+pageSize <= n; i += pageSize {
			page := chunk[i : i+pageSize]
			from, to := unusedBytes(page, at+int64(i))
			if !isDirty(page[from:to]) {
				continue
			}
			if _, err := f.File.WriteAt(none[from:to], at+int64(i+from)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unusedBytes is the range between the directory of a tree page and its first row; it is
// empty for other pages.
func unusedBytes(page []byte, at int64) (from, to int) {
	if len(page) != pageSize || at%pageSize != 0 {
		return 0, 0
	}
	head := 0
	if at == 0 {
		head = 100 // the file's own
	}
	switch page[head] {
	case 0x02, 0x05:
		from = head + 12
	case 0x0a, 0x0d:
		from = head + 8
	default:
		return 0, 0
	}
	from += 2 * int(binary.BigEndian.Uint16(page[head+3:]))
	to = int(binary.BigEndian.Uint16(page[head+5:]))
	if from > to || to > pageSize {
		return 0, 0 // it is damaged
	}
	return from, to
}

func isDirty(b []byte) bool {
	var none [pageSize]byte
	return !bytes.Equal(b, none[:len(b)])
}

// sweepFile clears, once, what other tools have left in the unused bytes of pages. The
// log has just been emptied; if another tool has written since, it waits for the next
// call. mu is held.
func (db *DB) sweepFile() error {
	if db.swept || db.file == nil {
		return nil
	}
	if err := db.writer.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() { _ = db.writer.Exec("ROLLBACK") }() // nothing was written by it
	if fileSize(db.path()+"-wal") > 0 {
		return errLogBusy
	}
	if err := db.file.sweep(); err != nil {
		return fmt.Errorf("clear unused bytes: %w", err)
	}
	db.swept = true
	return nil
}

// The methods below forward to the underlying file.

// SharedMemory forwards.
func (f *scrubbedFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }

// LockState forwards.
func (f *scrubbedFile) LockState() vfs.LockLevel { return vfsutil.WrapLockState(f.File) }

// PersistWAL forwards.
func (f *scrubbedFile) PersistWAL() bool { return vfsutil.WrapPersistWAL(f.File) }

// SetPersistWAL forwards.
func (f *scrubbedFile) SetPersistWAL(keep bool) { vfsutil.WrapSetPersistWAL(f.File, keep) }

// PowersafeOverwrite forwards.
func (f *scrubbedFile) PowersafeOverwrite() bool { return vfsutil.WrapPowersafeOverwrite(f.File) }

// SetPowersafeOverwrite forwards.
func (f *scrubbedFile) SetPowersafeOverwrite(on bool) { vfsutil.WrapSetPowersafeOverwrite(f.File, on) }

// SizeHint forwards.
func (f *scrubbedFile) SizeHint(size int64) error { return vfsutil.WrapSizeHint(f.File, size) }

// HasMoved forwards.
func (f *scrubbedFile) HasMoved() (bool, error) { return vfsutil.WrapHasMoved(f.File) }

var (
	_ vfs.FileSharedMemory       = (*scrubbedFile)(nil)
	_ vfs.FileLockState          = (*scrubbedFile)(nil)
	_ vfs.FilePersistWAL         = (*scrubbedFile)(nil)
	_ vfs.FilePowersafeOverwrite = (*scrubbedFile)(nil)
	_ vfs.FileSizeHint           = (*scrubbedFile)(nil)
	_ vfs.FileHasMoved           = (*scrubbedFile)(nil)
)
