package web

import (
	linked "container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// maxConnections is how many connections there are in all. Each takes a descriptor
// and some kilobytes.
const maxConnections = 2000

// connections bounds how many connections an address may hold, so that nobody can
// keep others out by holding all.
//
// Where there are too many, the oldest one goes that has not shown the token: on a
// machine with several users all of them have the address 127.0.0.1, and who waits
// to be let in must not be kept out by who only holds connections. If all have shown
// it, the new one is turned away.
type connections struct {
	perClient int

	mu      sync.Mutex
	open    map[net.Conn]*connection
	clients map[netip.Addr]*client
	// unproven are the connections of all clients that have not shown the token.
	unproven linked.List
}

type client struct {
	count    int
	unproven linked.List
}

type connection struct {
	conn    net.Conn
	address netip.Addr
	of      *client
	// among and own are where it is among the unproven, nil if it is not.
	among, own *linked.Element
}

func newConnections(perClient int) *connections {
	return &connections{perClient: perClient, open: map[net.Conn]*connection{}, clients: map[netip.Addr]*client{}}
}

// watch makes a server tell of its connections.
func (c *connections) watch(server *http.Server) {
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.add(conn)
		case http.StateClosed, http.StateHijacked:
			c.remove(conn)
		}
	}
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

type connectionKey struct{}

func (c *connections) add(conn net.Conn) {
	address := netip.Addr{}
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		address = at.Addr().Unmap()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.clients[address]
	if of == nil {
		of = &client{}
		c.clients[address] = of
	}
	added := &connection{conn: conn, address: address, of: of}
	added.among, added.own = c.unproven.PushBack(added), of.unproven.PushBack(added)
	c.open[conn] = added
	of.count++
	if of.count > c.perClient {
		c.close(of.unproven.Front().Value.(*connection))
	} else if len(c.open) > maxConnections {
		c.close(c.unproven.Front().Value.(*connection))
	}
}

// close ends a connection, which may be the one that was just added.
func (c *connections) close(one *connection) {
	c.forget(one)
	conn := one.conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn() // without a farewell, which may have to be waited for
	}
	_ = conn.Close()
}

func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.open[conn]; one != nil {
		c.forget(one)
	}
}

func (c *connections) forget(one *connection) {
	c.proven(one)
	delete(c.open, one.conn)
	if one.of.count--; one.of.count == 0 {
		delete(c.clients, one.address)
	}
}

// proven takes a connection out of those that may go.
func (c *connections) proven(one *connection) {
	if one.among != nil {
		c.unproven.Remove(one.among)
		one.of.unproven.Remove(one.own)
		one.among, one.own = nil, nil
	}
}

// prove notes that the connection of a request has shown the token.
func (c *connections) prove(r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.open[conn]; one != nil {
		c.proven(one)
	}
}
