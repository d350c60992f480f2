package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// prepareDirectory makes the directory, or looks whether one that is there is fit
// to hold what others should not read.
func prepareDirectory(dir string) error {
	if dir == "" {
		return errors.New("sqlite: a replica needs a directory; name one")
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return fmt.Errorf("sqlite: %s cannot be made: %w", dir, err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("sqlite: %s cannot be made: %w", dir, err)
		}
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("sqlite: %s cannot be used: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("sqlite: %s is no directory", dir)
	case info.Mode().Perm()&0o077 != 0 && modesMatter:
		return fmt.Errorf("sqlite: %s is open to others (mode %04o): chmod 700 it, or name a directory below it, which is then made", dir, info.Mode().Perm())
	}
	return nil
}

// lockDirectory takes the directory for this process, for as long as the lock is
// open. It is a lock of SQLite's own, on a file of its own: the system lets it go
// when the process dies, on every platform, and readers of the database do not
// meet it.
func lockDirectory(dir string) (*sqlite3.Conn, error) {
	name := filepath.Join(dir, lockName)
	if err := touch(name); err != nil {
		return nil, fmt.Errorf("sqlite: %s cannot be written: %w", dir, err)
	}
	conn, err := sqlite3.OpenFlags(fileURI(name), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err == nil {
		if err = conn.Exec("PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE"); err == nil {
			return conn, nil
		}
		conn.Close()
	}
	if errors.Is(err, sqlite3.BUSY) {
		return nil, fmt.Errorf("sqlite: %s is %w: a replica directory belongs to one process at a time", dir, ErrInUse)
	}
	return nil, fmt.Errorf("sqlite: %s cannot be locked: %w", dir, err)
}

// ErrInUse says that another process, or another part of this one, has a
// directory open.
var ErrInUse = errors.New("in use")

// fileURI names a file so that nothing in its path is taken for an option.
func fileURI(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath()
}
