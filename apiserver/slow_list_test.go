package apiserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStuckListIsEnded has a client that requests a list and does not read it. Without an end,
// its answer would hold a state of the resource, and count against a relay's limit for the caller.
func TestStuckListIsEnded(t *testing.T) {
	for _, path := range []string{"", "/c1", "?pretty=1", "?limit=300"} {
		listSlowly(t, "/api/v1/namespaces/default/configmaps"+path, func(response *bufio.Reader, ended <-chan struct{}) {
			select {
			case <-ended:
			case <-time.After(time.Hour):
				t.Errorf("%s: it is still being sent", path)
			}
		})
	}
}

// TestSlowListIsFinished has a client that reads, but takes minutes for it.
func TestSlowListIsFinished(t *testing.T) {
	for _, path := range []string{"", "?pretty=1"} {
		listSlowly(t, "/api/v1/namespaces/default/configmaps"+path, func(reader *bufio.Reader, _ <-chan struct{}) {
			began := time.Now()
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			var n int64
			for err == nil {
				var part int64
				part, err = io.CopyN(io.Discard, response.Body, 16<<10)
				n += part
				time.Sleep(10 * time.Second)
			}
			if err != io.EOF || n != response.ContentLength || n < 300_000 {
				t.Errorf("%s: %d bytes of %d: %v", path, n, response.ContentLength, err)
			}
			if took := time.Since(began); took < 2*time.Minute {
				t.Errorf("%s: that took %v, which is not slow", path, took)
			}
		})
	}
}

// listSlowly sends a request over a connection without buffers, in virtual time. ended is
// closed when the server has closed the connection.
func listSlowly(t *testing.T, path string, read func(response *bufio.Reader, ended <-chan struct{})) {
	t.Helper()
	inBubble(t, Options{}, func(t *testing.T, server *Server) {
		for i := range 300 {
			object := configMapNamed(fmt.Sprint("c", i), nil)
			object.Data["text"] = strings.Repeat("x", 1000)
			if err := server.Put(object); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan struct{})
		front := &http.Server{Handler: server, ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(ended)
			}
		}}
		here, there := net.Pipe()
		go func() { _ = front.Serve(&oneConn{conn: there}) }()
		fmt.Fprintf(here, "GET %s HTTP/1.1\r\nHost: server\r\n\r\n", path)
		read(bufio.NewReader(here), ended)
		_ = here.Close()
		_ = front.Close()
		synctest.Wait()
	})
}

// oneConn is a listener that has one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
