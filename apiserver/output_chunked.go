package apiserver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// chunked is an output to a connection of HTTP/1.1 that it has to itself. A buffer is one
// chunk and one write: one TLS record and one system call, if it is not large. net/http
// would make three of each out of an event of 10 KB, because its own buffer has 4 KiB, and
// that was half of what a delivery costs.
//
// The connection is closed after the answer. Watches last for minutes, so that is cheap.
//
// The handler of the request may return while the answer lasts: what net/http holds of the
// connection, its buffers and a goroutine with a large stack, is half of the memory of a
// watch.
type chunked struct {
	conn net.Conn
	head bytes.Buffer
	// ctx ends when the answer should end, or the client has gone.
	ctx     context.Context
	cancel  context.CancelFunc
	hurry   func() bool
	reading sync.WaitGroup
	// deadline is the one that the connection has.
	deadline time.Time
}

// A chunk begins with its size in hexadecimal digits. The size is written when the content
// is there, so it always has as many digits.
const (
	chunkHead = len("00000000\r\n")
	chunkEnd  = "\r\n"
	lastChunk = "0\r\n\r\n"
)

// lastWords is how long a client may take to read what is sent once the answer should end.
const lastWords = 500 * time.Millisecond

func newChunked(ctx context.Context, conn net.Conn, header http.Header) (*chunked, context.Context) {
	o := &chunked{conn: conn}
	o.ctx, o.cancel = context.WithCancel(ctx)
	o.head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(&o.head) // to memory
	o.head.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
	o.reading.Go(o.awaitClient)
	o.hurry = context.AfterFunc(o.ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(lastWords)) })
	return o, o.ctx
}

// mostUnread bounds what a client may send during a watch. Clients normally send nothing.
const mostUnread = 64 << 10

// awaitClient notices that the client has gone. It reads from the connection beneath TLS and
// discards what it reads: TLS announces the end of a connection, but the end itself follows.
// Reading through TLS needs three times the stack, for as long as the watch is open.
func (o *chunked) awaitClient() {
	defer o.cancel()
	conn := beneath(o.conn)
	buffer := make([]byte, 64)
	for rest := mostUnread; rest > 0; {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		rest -= n
	}
}

// beneath returns the connection that others, such as one of TLS, are made of.
func beneath(conn net.Conn) net.Conn {
	for {
		outer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = outer.NetConn()
	}
}

func (o *chunked) reserved() int { return chunkHead }

func (o *chunked) begin(deadline time.Time) error {
	err := o.write(o.head.Bytes(), deadline)
	o.head = bytes.Buffer{}
	return err
}

func (o *chunked) seal(buffer []byte) []byte {
	const digits = "0123456789abcdef"
	size := len(buffer) - chunkHead
	for i := chunkHead - 3; i >= 0; i-- {
		buffer[i] = digits[size&15]
		size >>= 4
	}
	copy(buffer[chunkHead-2:], chunkEnd)
	return append(buffer, chunkEnd...)
}

func (o *chunked) send(buffer []byte, deadline time.Time) error { return o.write(buffer, deadline) }

// write sends data. To set a deadline takes a twentieth of the CPU of a delivery, so one that
// is set is a little later than the one asked for, and serves the next writes too.
func (o *chunked) write(data []byte, deadline time.Time) error {
	if deadline.After(o.deadline) {
		o.deadline = deadline.Add(time.Until(deadline) / 8)
		_ = o.conn.SetWriteDeadline(o.deadline) // fails if the connection is closed, and so does the write
	}
	if o.ctx.Err() != nil {
		_ = o.conn.SetWriteDeadline(time.Now().Add(lastWords))
	}
	_, err := o.conn.Write(data)
	return err
}

func (o *chunked) end(complete bool) {
	if complete {
		_ = o.write([]byte(lastChunk), time.Now().Add(lastWords)) // the client may have gone
	}
	o.hurry()
	_ = o.conn.Close()
	o.cancel()
	o.reading.Wait()
}

func (o *chunked) detached() bool { return true }
