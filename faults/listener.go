package faults

import (
	"context"
	"net"
)

// Listener returns a listener whose connections have the faults of the plan; name
// distinguishes it from others under the same plan. What the server sends is
// delayed, garbled, cut off or lost.
//
//   - [Refuse] closes an accepted connection; the server does not see it.
//   - [Reset] discards, as TCP does, what has not been delivered yet: the client
//     gets at most the bytes before it.
//   - [Stall] leaves the connection half open: both sides may write and neither
//     receives anything, until one closes the connection.
//
// Put it below TLS, so that faults are those of the network.
func Listener(inner net.Listener, plan *Plan, name string) net.Listener {
	return &listener{Listener: inner, plan: plan, name: name}
}

type listener struct {
	net.Listener
	plan *Plan
	name string
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		r := l.plan.request(l.name, "connection")
		if kind, _ := r.failInBurst(Refuse); kind == "" {
			return newConn(c, r, true), nil
		}
		resetConn(c)
	}
}

// A DialFunc connects, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dial is [Listener] for clients: connections that the returned function makes have
// faults in what the server sends.
func Dial(dial DialFunc, plan *Plan, name string) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		r := plan.request(name, "connection")
		if kind, _ := r.failInBurst(Refuse); kind != "" {
			return nil, errRefused
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newConn(c, r, false), nil
	}
}
