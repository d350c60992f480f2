package postgres

import (
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"
)

// A connection over which nothing comes back any more ends in time, whether something was
// sent over it or not.
func TestConnectionsOfServersThatAreGone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	db, err := Connect("postgres://tarn@"+listener.Addr().String()+"/fleet?connect_timeout=7", Options{})
	must(t, err)
	defer db.Close()
	for name, config := range map[string]*pgconn.Config{"commits": &db.pool.Config().ConnConfig.Config, "heartbeats": &db.leases.pool.Config().ConnConfig.Config} {
		if config.ConnectTimeout != 7*time.Second {
			t.Errorf("%s: the limit for a connection is %v", name, config.ConnectTimeout)
		}
		conn, err := config.DialFunc(t.Context(), "tcp", listener.Addr().String())
		must(t, err)
		raw, err := conn.(*net.TCPConn).SyscallConn()
		must(t, err)
		option := func(which int) (value int) {
			must(t, raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, which) }))
			must(t, err)
			return value
		}
		if sent := time.Duration(option(unix.TCP_USER_TIMEOUT)) * time.Millisecond; sent != lostAfter {
			t.Errorf("%s: what is sent may be without an answer for %v", name, sent)
		}
		idle := time.Duration(option(unix.TCP_KEEPIDLE)+option(unix.TCP_KEEPINTVL)*option(unix.TCP_KEEPCNT)) * time.Second
		if idle > lostAfter {
			t.Errorf("%s: an idle connection is lost after %v", name, idle)
		}
		must(t, conn.Close())
	}
}
