package etcd_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// network passes connections on to a server until it is silent: then it takes everything and
// passes on nothing, as a machine that hangs or a firewall that has forgotten a connection.
type network struct {
	listener net.Listener
	server   string
	silent   atomic.Bool
	running  sync.WaitGroup

	mu    sync.Mutex
	open  []net.Conn
	ended bool
}

func startNetwork(t testing.TB, server string) *network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{listener: listener, server: server}
	n.running.Go(n.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		n.mu.Lock()
		n.ended = true
		for _, c := range n.open {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.running.Wait()
	})
	return n
}

func (n *network) address() string { return "http://" + n.listener.Addr().String() }

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return // it is closed
		}
		server, err := net.Dial("tcp", n.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		n.mu.Lock()
		n.open = append(n.open, client, server)
		if n.ended {
			_, _ = client.Close(), server.Close()
		}
		n.mu.Unlock()
		n.running.Go(func() { n.pass(client, server) })
		n.running.Go(func() { n.pass(server, client) })
	}
}

func (n *network) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	_, _ = io.Copy(writerUntil{to, &n.silent}, from) // ends with a connection
}

// writerUntil drops what is written once it is silent.
type writerUntil struct {
	io.Writer
	silent *atomic.Bool
}

func (w writerUntil) Write(p []byte) (int, error) {
	if w.silent.Load() {
		return len(p), nil
	}
	return w.Writer.Write(p)
}
