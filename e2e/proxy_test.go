package e2e

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestProxyCarries(t *testing.T) {
	p := NewProxy(t, echoServer(t))
	expectEcho(t, dial(t, p), "hello")
}

func TestProxyCut(t *testing.T) {
	p := NewProxy(t, echoServer(t))
	conn := dial(t, p)
	expectEcho(t, conn, "before")
	p.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut connection reads %v, not a reset", err)
	}
	expectEcho(t, dial(t, p), "anew")
}

func TestProxyRefuse(t *testing.T) {
	p := NewProxy(t, echoServer(t))
	conn := dial(t, p)
	expectEcho(t, conn, "before")
	p.Refuse()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still there")
	}
	if _, err := net.Dial("tcp", p.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection fails with %v; it should be refused", err)
	}
	p.Accept()
	expectEcho(t, dial(t, p), "again")
}

func TestProxyFreeze(t *testing.T) {
	p := NewProxy(t, echoServer(t))
	conn := dial(t, p)
	expectEcho(t, conn, "before")
	p.Freeze()
	if _, err := io.WriteString(conn, "frozen\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a frozen connection reads %v; it should stay open and silent", err)
	}
	expectEcho(t, dial(t, p), "new ones pass")

	p.Thaw()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "frozen\n" {
		t.Errorf("after the thaw came %q, %v; nothing may be lost", line, err)
	}
}

func expectEcho(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	if _, err := io.WriteString(conn, word+"\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != word+"\n" {
		t.Fatalf("the echo of %q is %q, %v", word, line, err)
	}
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// echoServer sends back what it is sent, until the test ends.
func echoServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}
