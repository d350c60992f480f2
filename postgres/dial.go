package postgres

import (
	"net"
	"time"
)

// lostAfter is how long a server may take nothing that was sent to it before the connection
// counts as lost. By default, Linux waits a quarter of an hour for a machine that is gone. A
// server that works on a statement has read it, so that it may take as long as it likes.
const lostAfter = 2 * time.Minute

// dialer makes connections that end if the server is gone without a word: a commit has no
// limit of time, because a first state takes as long as it takes.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 9},
		Control:         limitSilence,
	}
}
