package e2e

import (
	"net"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Proxy carries TCP connections to an address until a test has it misbehave.
//
// It knows nothing of TLS or HTTP: what it does to a connection is what a
// network does, so that a client's own defences (HTTP/2 pings, keep-alives,
// timeouts) are met as they are in life.
type Proxy struct {
	t       testing.TB
	target  string
	address string
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
}

// NewProxy puts a proxy before an address. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, target: target, address: "127.0.0.1:0", links: map[*link]struct{}{}}
	p.Accept()
	t.Cleanup(func() {
		p.Refuse()
		p.running.Wait()
	})
	return p
}

// Address is where the proxy listens; it stays the same.
func (p *Proxy) Address() string { return p.address }

// Through returns a copy of config that goes through the proxy.
func (p *Proxy) Through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "https://" + p.address
	return config
}

// Cut resets all connections. New ones are carried.
func (p *Proxy) Cut() {
	p.each(func(l *link) { l.reset() })
}

// Refuse resets all connections and refuses new ones.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Accept carries new connections again after Refuse.
func (p *Proxy) Accept() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.listener = listener
	p.address = listener.Addr().String()
	p.running.Go(func() { p.serve(listener) })
}

// Freeze leaves the connections that there are open and carries nothing on them
// any more, in neither direction: they are half-open. New ones are carried.
func (p *Proxy) Freeze() {
	p.each(func(l *link) { l.freeze() })
}

// Thaw carries on what Freeze has stopped.
func (p *Proxy) Thaw() {
	p.each(func(l *link) { l.thaw() })
}

func (p *Proxy) each(do func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		do(l)
	}
}

func (p *Proxy) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.carry(listener, client) })
	}
}

func (p *Proxy) carry(listener net.Listener, client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, server: server, closed: make(chan struct{})}
	defer l.reset()
	if !p.add(listener, l) {
		return
	}
	defer p.remove(l)
	var back sync.WaitGroup
	back.Go(func() { l.pump(client, server) })
	l.pump(server, client)
	back.Wait()
}

// add keeps a link, unless its listener was closed while it was made.
func (p *Proxy) add(listener net.Listener, l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// link is one connection, from the client and on to the server.
type link struct {
	client, server net.Conn
	closed         chan struct{}
	closing        sync.Once

	mu     sync.Mutex
	frozen chan struct{} // closed by thaw; nil while the link carries
}

// pump carries bytes one way until that fails. The end of a frozen connection
// does not pass either.
func (l *link) pump(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.waitThawed()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	l.reset()
}

func (l *link) waitThawed() {
	l.mu.Lock()
	frozen := l.frozen
	l.mu.Unlock()
	if frozen == nil {
		return
	}
	select {
	case <-frozen:
	case <-l.closed:
	}
}

func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil {
		l.frozen = make(chan struct{})
	}
}

func (l *link) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen != nil {
		close(l.frozen)
		l.frozen = nil
	}
}

func (l *link) reset() {
	l.closing.Do(func() {
		close(l.closed)
		reset(l.client)
		reset(l.server)
	})
}

// reset closes a connection so that the other side is told by a reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
