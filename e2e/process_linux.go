package e2e

import "syscall"

// groupOfItsOwn lets the kernel kill the program when the tests die without
// having cleaned up, as they do when they run out of time.
func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
