package main

import (
	"os"
	"strconv"
	"strings"
)

// resetPeakRSS resets the kernel's record of the largest resident size, and returns
// the present size. On systems other than Linux sizes are 0.
func resetPeakRSS() uint64 {
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) != nil {
		return 0
	}
	return status("VmRSS")
}

// peakRSS is the largest resident size since then.
func peakRSS() uint64 { return status("VmHWM") }

// memoryAvailable is how much memory programs can still allocate, 0 if the system
// does not report it.
func memoryAvailable() uint64 { return sizeIn("/proc/meminfo", "MemAvailable") }

func status(name string) uint64 { return sizeIn("/proc/self/status", name) }

// sizeIn reads a size, in bytes, from a file of /proc.
func sizeIn(path, name string) uint64 {
	text, err := os.ReadFile(path)
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
