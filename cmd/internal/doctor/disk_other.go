//go:build !(linux || darwin || freebsd)

package doctor

import "os"

// writable reports whether a directory's mode lets its owner write to it.
func writable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o200 != 0
}

// freeSpace is unknown here.
func freeSpace(string) (bytes uint64, known bool) { return 0, false }
