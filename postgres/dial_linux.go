package postgres

import (
	"cmp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence sets lostAfter for what is sent and not acknowledged. Probes do not cover
// that: they are sent on idle connections only.
func limitSilence(network, _ string, conn syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	controlled := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
	return cmp.Or(controlled, err)
}
