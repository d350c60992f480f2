package report

import (
	"syscall"
	"time"
)

// CPUTime is what this process has used so far, in user and kernel mode.
func CPUTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic("getrusage of the own process: " + err.Error())
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
