package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

// openUnread sends the request of a watch, and never reads the answer: its connection has
// the smallest buffer that the system gives.
func openUnread(ctx context.Context, to *server, path string) (end func(), err error) {
	trust, err := rest.TLSConfigFor(to.config)
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(to.config.Host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host.Host)
	if err != nil {
		return nil, err
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
		_ = conn.Close()
		return nil, err
	}
	trust = trust.Clone()
	trust.ServerName = host.Hostname()
	client := tls.Client(conn, trust)
	_, err = fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, host.Host, protobufType, to.config.BearerToken)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return func() { _ = conn.Close() }, nil
}
