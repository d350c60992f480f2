//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// modesMatter says that a file's mode controls who may read it.
const modesMatter = true

// noFollow opens no file that is a symbolic link.
const noFollow = syscall.O_NOFOLLOW

// ownerOf is the user and group that a file belongs to.
func ownerOf(info fs.FileInfo) (user, group int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// currentUser is the effective user of this process.
func currentUser() int { return os.Geteuid() }
