//go:build unix

package pgtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// CPU is what the server has used since it was started, by all its processes, those that have
// ended included. It reads /proc, which only Linux has.
func (s *Server) CPU() (time.Duration, error) {
	server := s.process.Process.Pid
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var used int64 // in hundredths of a second
	for _, file := range all {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		// The name of the process stands in brackets, and may have any character.
		end := bytes.LastIndexByte(raw, ')')
		if end < 0 {
			continue
		}
		var pid, parent int
		var user, system, endedUser, endedSystem int64
		if _, err := fmt.Sscan(string(raw), &pid); err != nil {
			return 0, err
		}
		var skipped string
		if _, err := fmt.Sscan(string(raw[end+1:]), &skipped, &parent, &skipped, &skipped, &skipped, &skipped, &skipped, &skipped, &skipped, &skipped, &skipped, &user, &system, &endedUser, &endedSystem); err != nil {
			return 0, err
		}
		if pid == server {
			used += user + system + endedUser + endedSystem
		}
		if parent == server {
			used += user + system
		}
	}
	if used == 0 {
		return 0, fmt.Errorf("nothing is known of process %d", server)
	}
	return time.Duration(used) * 10 * time.Millisecond, nil
}
