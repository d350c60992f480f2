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

// suffixes are those of the files that make up a database.
var suffixes = []string{"", "-wal", "-shm"}

// prepareDirectory creates the directory, or checks that an existing one is private.
//
// It refuses a directory that another user owns or that is open to others in any way, a
// symbolic link in its place, and files in it that are links or another user's: their
// owner could read what is written to them. Our own files that are open to others become
// private; see [touch]. It does not check the parent directories: a user who may write to
// them can replace the directory.
func prepareDirectory(dir string) error {
	if dir == "" {
		return errors.New("sqlite: a replica needs a directory; name one")
	}
	dir = filepath.Clean(dir)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return fmt.Errorf("sqlite: %s cannot be made: %w", dir, err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("sqlite: %s cannot be made: %w", dir, err)
		}
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return fmt.Errorf("sqlite: %s cannot be used: %w", dir, err)
	}
	return checkDirectory(dir, info)
}

// checkDirectory returns why an existing directory is refused, if it is. It changes
// nothing.
func checkDirectory(dir string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("sqlite: %s is a symbolic link, and who made it decides where it leads: name the directory itself", dir)
	case !info.IsDir():
		return fmt.Errorf("sqlite: %s is not a directory", dir)
	}
	if err := ours(dir, info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && modesMatter {
		return fmt.Errorf("sqlite: %s is open to others (mode %04o): chmod 700 it, or name a directory below it, which is then made", dir, mode)
	}
	for _, name := range filesOfDirectory(dir) {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("sqlite: %s cannot be used: %w", name, err)
		}
		if err := first(regular(name, info), ours(name, info)); err != nil {
			return err
		}
	}
	return nil
}

// accessProblems describes what makes a directory and its files readable by others than
// their owner. It does not compare the owner with this process: root may check any
// directory.
func accessProblems(dir string) (all []string) {
	info, err := os.Stat(dir)
	if err != nil {
		return []string{err.Error()}
	}
	owner, _, known := ownerOf(info)
	if mode := info.Mode().Perm(); mode&0o077 != 0 && modesMatter {
		all = append(all, fmt.Sprintf("the directory is open to others (mode %04o): chmod 700 it", mode))
	}
	for _, name := range filesOfDirectory(dir) {
		info, err := os.Lstat(name)
		if err != nil {
			continue // it need not be there
		}
		if err := regular(name, info); err != nil {
			all = append(all, strings.TrimPrefix(err.Error(), "sqlite: "))
			continue
		}
		if user, _, _ := ownerOf(info); known && user != owner {
			all = append(all, fmt.Sprintf("%s belongs to the user %d, and the directory to %d: chown it", filepath.Base(name), user, owner))
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 && modesMatter {
			all = append(all, fmt.Sprintf("%s is open to others (mode %04o): chmod 600 it", filepath.Base(name), mode))
		}
	}
	return all
}

// filesOfDirectory lists the files that a process with an open directory writes.
func filesOfDirectory(dir string) []string {
	names := []string{filepath.Join(dir, lockName)}
	for _, suffix := range suffixes {
		names = append(names, filepath.Join(dir, fileName+suffix))
	}
	return names
}

// ours fails if a file belongs to another user than this process.
func ours(name string, info fs.FileInfo) error {
	if user, _, known := ownerOf(info); known && user != currentUser() {
		return fmt.Errorf("sqlite: %s belongs to the user %d, who could read its content, and this process runs as %d: chown it, or name another directory", name, user, currentUser())
	}
	return nil
}

// regular fails for anything but a regular file.
func regular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("sqlite: %s is a symbolic link: remove it, or name another directory", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("sqlite: %s is not a file: remove it, or name another directory", name)
	}
	return nil
}

// touch creates a file that only its owner can read, or makes an existing one private.
// It follows no link.
func touch(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		_ = f.Chmod(0o600) // on file systems without modes there is nothing to do
	}
	return f.Close()
}

// restrictFiles gives the files that SQLite creates beside the database its owner and
// mode: when root reads a user's directory, the user must still be able to write it.
func restrictFiles(path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		return
	}
	user, group, known := ownerOf(info)
	for _, suffix := range suffixes[1:] {
		made, err := os.Lstat(path + suffix)
		if err != nil || !made.Mode().IsRegular() {
			continue
		}
		if made.Mode().Perm()&0o077 != 0 {
			_ = os.Chmod(path+suffix, 0o600) // on file systems without modes there is nothing to do
		}
		if owner, _, _ := ownerOf(made); known && owner != user && owner == currentUser() {
			_ = os.Lchown(path+suffix, user, group) // only root can
		}
	}
}

// lockDirectory locks the directory for this process until the lock is closed. It uses
// a SQLite lock on a separate file: the system releases it when the process dies, on
// every platform, and it does not affect readers of the database.
func lockDirectory(dir string) (*sqlite3.Conn, error) {
	name := filepath.Join(dir, lockName)
	err := touch(name)
	if err == nil && fileSize(name) > 0 {
		err = os.Truncate(name, 0) // nothing was ever written to it
	}
	if err != nil {
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

// fileURI escapes a path, so that no part of it becomes an option.
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
