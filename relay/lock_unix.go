//go:build unix

package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDirectory locks a directory for this process, until the file is closed or the
// process ends. It returns nil for no directory.
func lockDirectory(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("relay: the directory %s cannot be used: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("relay: the directory %s cannot be used: %w", dir, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("relay: the directory %s is in use by another process; give each relay one of its own", dir)
	}
	return file, nil
}
