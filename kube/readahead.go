package kube

import "net"

const (
	// readAhead is the size of one read from a busy connection, quietRead of one from a
	// quiet connection: an event or two.
	readAhead = 64 << 10
	quietRead = 16 << 10
	// quietAfter is how many reads in a row must have brought little.
	quietAfter = 16
)

// bufferedConn is a connection with a read buffer. HTTP reads a connection 4 KiB at a
// time, which is two or more system calls for every event of a watch. With the buffer one
// call serves several events.
//
// The buffer is small while little arrives: a process has many watches, most of them are
// quiet, and without HTTP/2 each has a connection.
//
// Deadlines still hold: a read that the buffer does not serve is a read of the connection.
type bufferedConn struct {
	net.Conn
	buf []byte
	// at and end bound what was read and not yet taken; err follows it.
	at, end int
	err     error
	// full says that the last read filled the buffer. little counts the reads in a row
	// that filled less than half of a small one.
	full   bool
	little int
}

func readAheadOf(conn net.Conn) net.Conn { return &bufferedConn{Conn: conn} }

func (c *bufferedConn) Read(p []byte) (int, error) {
	if c.at == c.end {
		if err := c.err; err != nil {
			c.err = nil
			return 0, err
		}
		c.fit()
		if len(p) >= len(c.buf) {
			return c.Conn.Read(p)
		}
		c.fill()
	}
	n := copy(p, c.buf[c.at:c.end])
	c.at += n
	if c.at < c.end {
		return n, nil
	}
	err := c.err
	c.err = nil
	return n, err
}

// fit gives an empty buffer the size for what arrives.
func (c *bufferedConn) fit() {
	switch {
	case c.full && len(c.buf) < readAhead:
		c.buf = make([]byte, readAhead)
	case c.buf == nil || c.little >= quietAfter && len(c.buf) > quietRead:
		c.buf = make([]byte, quietRead)
	}
}

func (c *bufferedConn) fill() {
	c.at = 0
	c.end, c.err = c.Conn.Read(c.buf)
	c.full = c.end == len(c.buf)
	if c.little++; c.end > quietRead/2 {
		c.little = 0
	}
}
