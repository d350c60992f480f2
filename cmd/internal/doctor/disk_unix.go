//go:build linux || darwin || freebsd

package doctor

import "syscall"

// accessWrite asks whether a file may be written and, if it is a directory, entered.
const accessWrite = 2 | 1

// writable reports whether this process may write to a directory. On a file system that is
// mounted read-only nobody may, whatever the mode.
func writable(dir string) bool { return syscall.Access(dir, accessWrite) == nil }

// freeSpace is how much this user may still write.
func freeSpace(dir string) (bytes uint64, known bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, false
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), true
}
