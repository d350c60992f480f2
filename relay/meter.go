package relay

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// meter counts what is written to a client, as it is after compression and before TLS.
type meter struct {
	http.ResponseWriter
	// began is called when an answer begins.
	began func()
	written
}

// written adds up bytes.
type written struct{ resource, client *atomic.Int64 }

func (w written) add(n int) {
	w.resource.Add(int64(n))
	if w.client != nil {
		w.client.Add(int64(n))
	}
}

func (m meter) WriteHeader(code int) {
	m.began()
	m.ResponseWriter.WriteHeader(code)
}

func (m meter) Write(data []byte) (int, error) {
	n, err := m.ResponseWriter.Write(data)
	m.add(n)
	return n, err
}

// Hijack counts what is written to the connection instead.
func (m meter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(m.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	m.began()
	return meteredConn{conn, m.written}, buffered, nil
}

type meteredConn struct {
	net.Conn
	written written
}

func (c meteredConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	c.written.add(n)
	return n, err
}

// NetConn returns the connection whose bytes are counted.
func (c meteredConn) NetConn() net.Conn { return c.Conn }

// Unwrap leads http.ResponseController to deadlines and flushing.
func (m meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// countedBody counts what is read of an answer of the origin.
type countedBody struct {
	io.ReadCloser
	count *atomic.Int64
}

func (b countedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.count.Add(int64(n))
	return n, err
}
