//go:build unix

package measure

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is the processor time of this process so far, in user and kernel mode.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// resetPeak resets the kernel's record of the largest resident size, and returns
// the present one. Only Linux can; elsewhere there is no peak.
func resetPeak() uint64 {
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) != nil {
		return 0
	}
	return kernelSays("VmRSS")
}

// peakMemory is the largest resident size since then.
func peakMemory() uint64 { return kernelSays("VmHWM") }

func kernelSays(name string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kilobytes, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
