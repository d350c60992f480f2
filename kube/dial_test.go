package kube

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// Clients of one server share its connections, and a config's own dialer is used.
func TestConnections(t *testing.T) {
	var opened, dialed atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	ask := func(cfg *rest.Config) {
		t.Helper()
		client, err := httpClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "hello" {
			t.Fatalf("%q, %v", body, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		ask(&rest.Config{Host: server.URL})
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("3 clients opened %d connections", got)
	}
	ask(&rest.Config{Host: server.URL, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	if dialed.Load() != 1 {
		t.Error("the config's dialer was not used")
	}
	if _, err := httpClientFor(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: "/no/such/file"}}); err == nil {
		t.Error("a config that cannot be used was")
	}
}

// Many small reads are few reads of the connection.
func TestReadAhead(t *testing.T) {
	const size = 1 << 20
	here, there := net.Pipe()
	counted := &countedConn{Conn: here}
	conn := readAheadOf(counted)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer here.Close()
	writer.Go(func() { _, _ = there.Write(make([]byte, size)) })
	for got := 0; got < size; {
		n, err := conn.Read(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if limit := size/readAhead + 1; counted.reads > limit {
		t.Errorf("%d reads of the connection, %d are enough", counted.reads, limit)
	}
}

type countedConn struct {
	net.Conn
	reads int
}

func (c *countedConn) Read(p []byte) (int, error) {
	c.reads++
	return c.Conn.Read(p)
}
