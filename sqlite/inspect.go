package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// Inspection describes a directory without reading its objects.
type Inspection struct {
	// Exists says that the directory exists. If it does not, [Open] creates it.
	Exists bool
	// Refused is why [Open] refuses the directory: its owner, its mode, or a link in its
	// place; nil if Open accepts it.
	Refused error
	// Mode is the directory's.
	Mode fs.FileMode
	// InUse says that a process has the directory open for writing.
	InUse bool
	// Format is the format of the file, 0 if there is no file or nothing in it; Reads is
	// the one that this package reads and writes.
	Format, Reads int
	// Converts says that [Open] converts a file of this older Format and keeps its content.
	// Files of other older formats are removed and built anew.
	Converts bool
	// Unreadable is why the format cannot be read, nil if it can.
	Unreadable error
	// Bytes is the size of the file and its log.
	Bytes int64
}

// Inspect returns the state of a directory, before it is opened for writing. It changes
// nothing, needs no key, and may run while another process writes the directory. [Check]
// checks the content.
func Inspect(ctx context.Context, dir string) (Inspection, error) {
	found := Inspection{Reads: format}
	dir = filepath.Clean(dir)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("sqlite: %s cannot be used: %w", dir, err)
	}
	found.Exists, found.Mode = true, info.Mode().Perm()
	if found.Refused = checkDirectory(dir, info); found.Refused != nil {
		return found, nil
	}
	if found.InUse, err = locked(dir); err != nil {
		return found, err
	}
	path := filepath.Join(dir, fileName)
	if found.Bytes = fileSize(path) + fileSize(path+"-wal"); found.Bytes == 0 {
		return found, nil
	}
	// Without a writer and a log, reading needs no files beside the database, and
	// creates none.
	still := !found.InUse && fileSize(path+"-wal") == 0
	err = tryGuarded(ctx, path, still, maxGrace, func(conn *sqlite3.Conn, _ *stopper) error {
		conn.SetInterrupt(ctx)
		found.Format, err = inspectFormat(conn)
		found.Converts = err == nil && oldTables[int64(found.Format)] != nil && reserved(conn) == 0
		return err
	})
	if ctx.Err() != nil {
		return found, context.Cause(ctx)
	}
	found.Unreadable = err
	return found, nil
}

// inspectFormat is the format that a file's header names, 0 if it has no tables.
func inspectFormat(conn *sqlite3.Conn) (int, error) {
	content, err1 := number(conn, "SELECT count(*) FROM sqlite_schema")
	id, err2 := number(conn, "PRAGMA application_id")
	version, err3 := number(conn, "PRAGMA user_version")
	switch err := first(err1, err2, err3); {
	case err != nil:
		return 0, err
	case content == 0:
		return 0, nil
	case id != applicationID:
		return 0, errForeign
	}
	return int(version), nil
}

// locked reports whether a process has a directory open. It takes a read lock on the
// lock file, which fails while a process holds it. A process that opens the directory in
// that instant fails.
func locked(dir string) (bool, error) {
	name := filepath.Join(dir, lockName)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	conn, err := sqlite3.OpenFlags(fileURI(name), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err == nil {
		_, err = number(conn, "SELECT count(*) FROM sqlite_schema")
		err = first(err, conn.Close())
	}
	if errors.Is(err, sqlite3.BUSY) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("sqlite: cannot find out whether %s is in use: %w", dir, err)
	}
	return false, nil
}
