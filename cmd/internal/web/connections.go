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

// maxConnections bounds the number of connections in all. Each takes a descriptor and some
// kilobytes.
const maxConnections = 2000

// connections limits how many connections one address may hold.
//
// Above the limit, it closes the oldest connection that has not authenticated. On a
// machine with several users they all have the address 127.0.0.1, and a user who only
// holds connections open must not lock out one who has the token. If all connections
// of the address have authenticated, the new one is closed.
type connections struct {
	perClient int

	mu      sync.Mutex
	open    map[net.Conn]*connection
	clients map[netip.Addr]*client
	// unauthenticated are the connections, of all clients, that have not shown the
	// token yet, oldest first.
	unauthenticated linked.List
}

type client struct {
	count           int
	unauthenticated linked.List
}

type connection struct {
	conn    net.Conn
	address netip.Addr
	of      *client
	// inAll and inOwn are its places in the lists of unauthenticated connections,
	// nil once it has authenticated.
	inAll, inOwn *linked.Element
}

func newConnections(perClient int) *connections {
	return &connections{perClient: perClient, open: map[net.Conn]*connection{}, clients: map[netip.Addr]*client{}}
}

// watch makes a server report its connections.
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
	added.inAll, added.inOwn = c.unauthenticated.PushBack(added), of.unauthenticated.PushBack(added)
	c.open[conn] = added
	of.count++
	if of.count > c.perClient {
		c.close(of.unauthenticated.Front().Value.(*connection))
	} else if len(c.open) > maxConnections {
		c.close(c.unauthenticated.Front().Value.(*connection))
	}
}

// close ends a connection, which may be the one that was just added.
func (c *connections) close(one *connection) {
	c.forget(one)
	conn := one.conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn() // without the closing message of TLS, which may block
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
	c.unlist(one)
	delete(c.open, one.conn)
	if one.of.count--; one.of.count == 0 {
		delete(c.clients, one.address)
	}
}

// unlist removes a connection from the lists of unauthenticated ones.
func (c *connections) unlist(one *connection) {
	if one.inAll != nil {
		c.unauthenticated.Remove(one.inAll)
		one.of.unauthenticated.Remove(one.inOwn)
		one.inAll, one.inOwn = nil, nil
	}
}

// authenticated notes that the connection of a request has shown the token.
func (c *connections) authenticated(r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.open[conn]; one != nil {
		c.unlist(one)
	}
}
