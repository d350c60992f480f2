package postgres

import (
	"net"
	"time"
)

// lostAfter is how long a server may acknowledge nothing before its connection counts as
// lost. A server that is slow, or whose disk is full, acknowledges; one whose machine or
// network has gone does not. By default, Linux waits a quarter of an hour.
const lostAfter = 2 * time.Minute

// dialer makes connections that end if the server is gone without a word: a commit has no
// limit of time, because a first state takes as long as it takes.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 9},
		Control:         limitSilence,
	}
}
