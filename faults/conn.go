package faults

import (
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection with faults in what the server sends: in what is written
// to it if it is the server's end, in what is read from it if it is the client's.
// The other direction has no faults of its own, but ends when the first one does.
type conn struct {
	net.Conn
	server bool
	// pause delays the first byte.
	pause time.Duration
	// stalled discards everything, in both directions.
	stalled atomic.Bool

	// mu guards wire and the order of what goes over it.
	mu    sync.Mutex
	begun bool
	wire  *wire

	closing sync.Once
	closed  chan struct{}
	err     error
}

func newConn(inner net.Conn, r *request, server bool) *conn {
	return &conn{Conn: inner, server: server, pause: r.injector(Delay).pause(), wire: r.wire(), closed: make(chan struct{})}
}

func (c *conn) Write(p []byte) (int, error) {
	if !c.server {
		if c.stalled.Load() {
			return len(p), nil
		}
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin()
	written := 0
	for written < len(p) && !c.stalled.Load() {
		room, end := c.wire.room(len(p) - written)
		if end != "" {
			if err := c.breakOff(end, net.ErrClosed); err != nil {
				return written, err
			}
			continue
		}
		portion := p[written : written+room]
		if c.wire.garble != nil {
			// The caller's bytes are not ours to change.
			portion = slices.Clone(portion)
		}
		c.wire.pass(portion)
		n, err := c.Conn.Write(portion)
		written += n
		if err != nil {
			return written, err
		}
	}
	return len(p), nil
}

func (c *conn) Read(p []byte) (int, error) {
	if c.server {
		return c.receive(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin()
	room, end := c.wire.room(len(p))
	if end != "" {
		if err := c.breakOff(end, io.EOF); err != nil {
			return 0, err
		}
	}
	if c.stalled.Load() {
		return c.receive(p)
	}
	n, err := c.Conn.Read(p[:room])
	c.wire.pass(p[:n])
	return n, err
}

// receive reads, but once the connection has stalled returns nothing of it. That
// way it still ends with its deadline, or when either side hangs up.
func (c *conn) receive(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if !c.stalled.Load() {
			return n, err
		}
		if err != nil {
			return 0, err
		}
	}
}

// begin holds up the first byte.
func (c *conn) begin() {
	if c.begun {
		return
	}
	c.begun = true
	if c.pause <= 0 {
		return
	}
	timer := time.NewTimer(c.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closed:
	}
}

// breakOff ends the connection and returns the error for its user: over if it was
// closed normally, nothing if it stalls.
func (c *conn) breakOff(end Kind, over error) error {
	switch end {
	case Stall:
		c.stalled.Store(true)
		return nil
	case Truncate:
		c.Close()
		return over
	default:
		resetConn(c)
		return errReset
	}
}

func (c *conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.err = c.Conn.Close()
	})
	return c.err
}

// SetLinger is for connections that can be reset.
func (c *conn) SetLinger(seconds int) error {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(seconds)
	}
	return nil
}

// resetConn closes a connection at once: where it is TCP the other side sees a
// reset, and does not get what is still on its way.
func resetConn(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}
