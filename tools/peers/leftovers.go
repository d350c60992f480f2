package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// runMark is a variable in the environment of a test run, by which the processes that it
// leaves behind are found: controller-runtime's tests do not stop all of their servers,
// and start each in a process group of its own.
const runMark = "TARN_PEERS_RUN"

// endLeftovers ends the processes whose environment has a mark, and says how many. It
// needs the /proc of Linux, and does nothing elsewhere.
func endLeftovers(mark string) (ended int) {
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0
	}
	for _, at := range found {
		environ, err := os.ReadFile(at)
		if err != nil || !bytes.Contains(append(environ, 0), []byte(runMark+"="+mark+"\x00")) {
			continue // somebody else's, or it has just ended
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(at)))
		if err != nil {
			continue
		}
		if process, err := os.FindProcess(id); err == nil && process.Kill() == nil {
			ended++
		}
	}
	return ended
}
