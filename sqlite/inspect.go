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

// Inspection is what can be told of a directory without reading its objects.
type Inspection struct {
	// Exists says that the directory is there. If it is not, [Open] makes it.
	Exists bool
	// Refused is why [Open] refuses the directory: its owner, its mode, or a link in its
	// place. It is nil if Open does not.
	Refused error
	// Mode is the directory's.
	Mode fs.FileMode
	// InUse says that a process has the directory open for writing.
	InUse bool
	// Format is the format of the file, 0 if there is no file or nothing in it; Reads is
	// the one that this package reads and writes.
	Format, Reads int
	// Unreadable is why the format cannot be told, nil if it can.
	Unreadable error
	// Bytes is how long the file and its log are.
	Bytes int64
}

// Inspect says in what state a directory is, before anything is opened for writing. It
// changes nothing, needs no key, and may run beside a process that writes the
// directory. [Check] looks at the content.
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
	// Where nobody writes and there is no log, reading needs no files beside the
	// database, and makes none.
	still := !found.InUse && fileSize(path+"-wal") == 0
	err = tryGuarded(ctx, path, still, maxGrace, func(conn *sqlite3.Conn, _ *stopper) error {
		conn.SetInterrupt(ctx)
		found.Format, err = inspectFormat(conn)
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

// locked says whether a process has a directory open. It asks for the right to read the
// lock's file, which nobody gets while another one has it; a process that takes the
// directory in that instant is refused it.
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
		return false, fmt.Errorf("sqlite: it cannot be told whether %s is in use: %w", dir, err)
	}
	return false, nil
}
