package kube

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// readAhead is the size of one read from a connection.
const readAhead = 64 << 10

// bufferedDial dials like client-go's default dialer, and buffers the reads.
//
// HTTP reads a connection 4 KiB at a time, which is two or more system calls for
// every event of a watch. With the buffer one call serves several events.
//
// There is one dialer for the process, because client-go tells transports apart by
// their dialers: so all clients of one server still share its connections.
var bufferedDial = &transport.DialHolder{Dial: dialWithin(30 * time.Second)}

func dialWithin(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return readAheadOf(conn), nil
	}
}

// httpClientFor is [rest.HTTPClientFor] with buffered connections, unless the
// config has a dialer of its own, as one with an exec plugin does.
func httpClientFor(cfg *rest.Config) (*http.Client, error) {
	return httpClientWith(cfg, bufferedDial)
}

func httpClientWith(cfg *rest.Config, dial *transport.DialHolder) (*http.Client, error) {
	how, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	if how.DialHolder == nil {
		how.DialHolder = dial
	}
	wire, err := transport.New(how)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: wire, Timeout: cfg.Timeout}, nil
}

func readAheadOf(conn net.Conn) net.Conn {
	return &bufferedConn{conn, bufio.NewReaderSize(conn, readAhead)}
}

// bufferedConn is a connection with a read buffer. Deadlines still hold: a read
// that the buffer does not serve is a read of the connection.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }
