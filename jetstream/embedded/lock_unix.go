//go:build unix

package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDirectory makes a directory that of this process, until the file is closed or the
// process ends. The server itself does not notice another one that writes the same streams:
// each damages what the other has.
func lockDirectory(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("nats: the directory %s cannot be used: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "tarn.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("nats: the directory %s cannot be used: %w", dir, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("nats: another server has its streams in %s; connect to that one, or name another directory", dir)
	}
	return file, nil
}
