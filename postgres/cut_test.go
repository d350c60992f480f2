package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarnproject/tarn"
)

// cutter passes connections on to a server, and cuts the one whose n-th message comes next.
type cutter struct {
	listener net.Listener
	socket   string
	running  sync.WaitGroup
	// left counts the messages until the cut, from the client or from the server; 0 cuts
	// nothing.
	fromClient, fromServer atomic.Int64
	cuts                   atomic.Int64

	mu   sync.Mutex
	open []net.Conn
}

func startCutter(t *testing.T, socket string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{listener: listener, socket: socket}
	c.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			session, err := net.Dial("unix", socket)
			if err != nil {
				t.Error(err)
				return
			}
			c.mu.Lock()
			c.open = append(c.open, client, session)
			c.mu.Unlock()
			c.running.Go(func() { c.pass(client, session, true, &c.fromClient) })
			c.running.Go(func() { c.pass(session, client, false, &c.fromServer) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		c.mu.Lock()
		for _, conn := range c.open {
			_ = conn.Close()
		}
		c.mu.Unlock()
		c.running.Wait()
	})
	return c
}

// pass copies one direction, message by message; the first one of a client has no kind.
func (c *cutter) pass(from, to net.Conn, first bool, left *atomic.Int64) {
	defer from.Close()
	defer to.Close()
	for {
		var frame []byte
		var err error
		if first {
			frame = make([]byte, 4)
			if _, err = io.ReadFull(from, frame); err == nil {
				frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame)-4)...)
				_, err = io.ReadFull(from, frame[4:])
			}
			first = false
		} else {
			_, frame, err = readFrame(from)
		}
		if err != nil {
			return
		}
		if left.Load() > 0 && left.Add(-1) == 0 {
			c.cuts.Add(1)
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// A connection that is lost at any step of a commit, on the way to the server or back, loses
// no state and repeats none, and nothing is compared.
func TestConnectionLostAtEachStep(t *testing.T) {
	direct := database(t)
	c := startCutter(t, server.Socket())
	_, schema, _ := strings.Cut(direct, "&search_path=")
	db := connect(t, fmt.Sprintf("postgres://tarn@%s/postgres?sslmode=disable&search_path=%s", c.listener.Addr(), schema), Options{History: true, HistoryAge: time.Hour, Lease: time.Hour})
	s := opened(t, db)
	version := func(n int) tarn.Version { return tarn.Version(fmt.Sprint(n)) }
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", ""), thing("b", "1", "")))))
	v, want := 1, []string{}
	for what, left := range map[string]*atomic.Int64{"from the client": &c.fromClient, "from the server": &c.fromServer} {
		for _, kind := range []string{"changes", "position"} {
			for step := int64(1); ; step++ {
				v++
				b := batch(version(v))
				if kind == "changes" {
					b.Changes = []tarn.Change[object]{thing("a", version(v), "x"), gone("b", version(v)), thing("b", version(v), "x")}
					b.Gaps = []tarn.Gap{{From: version(v - 1), To: version(v), Cause: tarn.GapFolded}}
					want = append(want, fmt.Sprint(v))
				}
				cuts := c.cuts.Load()
				left.Store(step)
				for err := s.Commit(t.Context(), b); err != nil; err = s.Commit(t.Context(), b) {
					if b.Again = true; errors.Is(err, tarn.ErrSinkEmpty) || errors.Is(err, errWentBack) || errors.Is(err, errLost) {
						t.Fatalf("%s at step %d %s: %v", kind, step, what, err)
					}
				}
				left.Store(0)
				db.wants(t, "SELECT version FROM tarn_positions", fmt.Sprint(v))
				if c.cuts.Load() == cuts {
					t.Logf("%s %s: %d steps", kind, what, step-1)
					break
				}
			}
		}
	}
	plain := connect(t, direct, Options{})
	for statement, each := range map[string]int64{"SELECT version FROM things_history WHERE version <> '1' ORDER BY seq": 3, "SELECT to_version FROM tarn_gaps ORDER BY id": 1} {
		var all []string
		for _, v := range want {
			for range each {
				all = append(all, v)
			}
		}
		plain.wants(t, statement, all...)
	}
}
