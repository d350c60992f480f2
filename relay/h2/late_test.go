package h2

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// heldConn is a connection whose writes wait while they are held.
type heldConn struct {
	net.Conn
	*held
}

// held holds the writes of a test's connections, and counts these.
type held struct {
	mu       sync.Mutex
	accepted int
	release  chan struct{} // nil if writes are not held
	// waits has a value when a write waits, and bounded when its deadline is then set.
	waits, bounded chan struct{}
}

func (h *held) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release = make(chan struct{})
}

func (h *held) let() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.release)
	h.release = nil
}

func (h *held) holding() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.release
}

func (c heldConn) Write(data []byte) (int, error) {
	if release := c.holding(); release != nil {
		c.waits <- struct{}{}
		<-release
	}
	return c.Conn.Write(data)
}

func (c heldConn) SetWriteDeadline(at time.Time) error {
	err := c.Conn.SetWriteDeadline(at)
	if c.holding() != nil {
		select {
		case c.bounded <- struct{}{}:
		default:
		}
	}
	return err
}

type heldListener struct {
	net.Listener
	*held
}

func (l heldListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.accepted++
	l.mu.Unlock()
	return heldConn{conn, l.held}, nil
}

// A stream whose time is over while its goroutine writes for the connection ends alone, if the
// write ends soon.
func TestLateWhileItWrites(t *testing.T) {
	h := &held{waits: make(chan struct{}, 16), bounded: make(chan struct{}, 1)}
	write, end := make(chan struct{}), make(chan struct{})
	flushed := make(chan struct{}, 2)
	var late *http.ResponseController
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.Flush(); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/late" {
			late = control
		}
		flushed <- struct{}{}
		if r.URL.Path == "/other" {
			<-end
			fmt.Fprint(w, "all of it")
			return
		}
		<-write
		fmt.Fprint(w, "some")
		_ = control.Flush()
		<-r.Context().Done()
	}))
	s.EnableHTTP2 = true
	s.Listener = heldListener{s.Listener, h}
	Configure(s.Config)
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	defer client.CloseIdleConnections()

	var bodies []io.ReadCloser
	for _, path := range []string{"/other", "/late"} {
		response, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		bodies = append(bodies, response.Body)
	}
	<-flushed // nobody writes any more
	<-flushed
	h.hold()
	close(write)
	<-h.waits
	select {
	case <-h.bounded: // when the write began
	default:
	}
	if err := late.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Error(err)
	}
	<-h.bounded
	h.let()
	if _, err := io.ReadAll(bodies[1]); err == nil {
		t.Error("a stream whose time is over ended as if it were complete")
	}
	close(end)
	if got, err := io.ReadAll(bodies[0]); string(got) != "all of it" || err != nil {
		t.Errorf("the other stream got %q, %v", got, err)
	}
	if h.accepted != 1 {
		t.Errorf("there were %d connections", h.accepted)
	}
}
