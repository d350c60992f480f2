package kube

import (
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// bufferedDial dials like client-go's default dialer, and buffers the reads.
//
// There is one dialer for the process, because client-go distinguishes transports
// by their dialers: so all clients of one server still share its connections.
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
