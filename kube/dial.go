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

// readAhead is how much is taken from a connection at once.
const readAhead = 64 << 10

// readingAhead dials as client-go does where a config says nothing, and reads ahead.
//
// HTTP reads a connection 4 KiB at a time, which is two calls of the kernel and more
// for every event of a watch; with these, there is one for several.
//
// There is one for the process, because client-go tells transports apart by their
// dialers: so all clients of one server still share its connections.
var readingAhead = &transport.DialHolder{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return readAheadOf(conn), nil
}}

// httpClientFor is [rest.HTTPClientFor], with connections that read ahead unless the
// config brings a dialer of its own, as one with an exec plugin does.
func httpClientFor(cfg *rest.Config) (*http.Client, error) {
	how, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	if how.DialHolder == nil {
		how.DialHolder = readingAhead
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

// bufferedConn is a connection that reads ahead. Deadlines hold as ever: a read that
// the buffer does not serve is one of the connection.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }
