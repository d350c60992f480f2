// Package proxytest has what lies between clients and servers in tests: a proxy, for a server that
// is slow, hangs or is cut off, and a recorder of requests.
//
// It imports nothing of this project, so that the tests of module etcd can use it without
// requiring more.
package proxytest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes connections on to a server, as slowly as it is set to, or not at all.
type Proxy struct {
	listener        net.Listener
	network, target string
	// rate is how many bytes it passes on in a second, of each direction of each connection;
	// 0 means all at once.
	rate   atomic.Int64
	silent atomic.Bool
	// carry passes a connection on, until both ends of it are closed.
	carry   func(client, server net.Conn)
	running sync.WaitGroup

	mu    sync.Mutex
	ended bool
	open  []net.Conn
}

// Start passes connections on to a server until the test ends.
func Start(t testing.TB, network, target string) *Proxy {
	t.Helper()
	return StartCarrying(t, network, target, nil)
}

// StartCarrying is [Start] with a function that passes each connection on in its own way,
// until both ends of it are closed. The end of the test closes them.
func StartCarrying(t testing.TB, network, target string, carry func(client, server net.Conn)) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, network: network, target: target, carry: carry}
	if carry == nil {
		p.carry = p.passBoth
	}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Limit has it pass on so many bytes in a second; 0 means all at once.
func (p *Proxy) Limit(bytesPerSecond int64) { p.rate.Store(bytesPerSecond) }

// Silence has it take everything and pass on nothing, as a machine that hangs or a firewall
// that has forgotten a connection.
func (p *Proxy) Silence() { p.silent.Store(true) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // it is closed
		}
		server, err := net.Dial(p.network, p.target)
		if err != nil || !p.keep(client, server) {
			_ = client.Close()
			continue
		}
		p.running.Go(func() { p.carry(client, server) })
	}
}

// keep records connections to be closed at the end, and closes them if that has come.
func (p *Proxy) keep(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = server.Close()
		return false
	}
	p.open = append(p.open, client, server)
	return true
}

func (p *Proxy) passBoth(client, server net.Conn) {
	var answers sync.WaitGroup
	answers.Go(func() { p.pass(server, client) })
	p.pass(client, server)
	answers.Wait()
}

// pass copies one direction. When it ends, both ends are closed.
func (p *Proxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	chunk := make([]byte, 1<<10)
	for {
		n, err := from.Read(chunk)
		if rate := p.rate.Load(); rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate)) // servers have no virtual time
		}
		if p.silent.Load() {
			n = 0
		}
		if _, failed := to.Write(chunk[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for _, c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
