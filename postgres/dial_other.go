//go:build !linux

package postgres

import "syscall"

// limitSilence leaves the limit to the system, which has no portable setting for it.
func limitSilence(string, string, syscall.RawConn) error { return nil }
