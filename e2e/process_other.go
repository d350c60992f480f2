//go:build unix && !linux

package e2e

import "syscall"

func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
