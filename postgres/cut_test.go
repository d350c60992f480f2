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
	// mute drops what is sent over a connection, without an end of it.
	mute map[net.Conn]bool
}

// muteAll drops from now on what is sent over the connections that there are.
func (c *cutter) muteAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = map[net.Conn]bool{}
	for _, conn := range c.open {
		c.mute[conn] = true
	}
}

func (c *cutter) isMute(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mute[conn]
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
		c.end()
		c.running.Wait()
	})
	return c
}

// end closes everything.
func (c *cutter) end() {
	_ = c.listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
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
		if c.isMute(from) {
			continue
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// A connection of which nothing comes back, and which does not end, as when a firewall has
// forgotten it, costs a feeder a heartbeat, and not its lease.
func TestLeaseOutlivesALostHeartbeat(t *testing.T) {
	t.Parallel()
	direct := database(t)
	c := startCutter(t, server.Socket())
	_, schema, _ := strings.Cut(direct, "&search_path=")
	const lease = 3 * time.Second
	one := connect(t, fmt.Sprintf("postgres://tarn@%s/postgres?sslmode=disable&search_path=%s", c.listener.Addr(), schema), Options{Lease: lease})
	two := connect(t, direct, Options{})
	must(t, one.Claim(t.Context(), "things"))
	until := func() string { return two.query(t, "SELECT lease_until::text FROM tarn_feeds")[0] }
	before := until()
	eventually(t, "a heartbeat", func() bool { return until() > before })
	c.muteAll()
	defer c.end() // or the driver waits for the answers of a connection that it closes
	for start := time.Now(); time.Since(start) < 2*lease; time.Sleep(50 * time.Millisecond) {
		if err := two.Claim(t.Context(), "things"); !isOwned(err) {
			t.Fatalf("after %s another feeder is told %v", time.Since(start), err)
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
