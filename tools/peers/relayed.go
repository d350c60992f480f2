package main

// throughRelay has the suites of controller-runtime talk to a relay in front of the server
// that they start. Everything of theirs stays as it is; the server's answers are the relay's.
var throughRelay = swap{name: "relay", types: map[string]string{
	runtimePath + "/pkg/envtest.Environment": runtimePath + "/pkg/peers.Environment",
}, except: []string{"pkg/envtest"}, add: map[string]string{"pkg/peers/peers.go": `package peers

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"` + relay + `"
)

// Environment is a server behind a relay. A package of tests has one.
type Environment envtest.Environment

var stop = func() {}

var served = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
}

func (e *Environment) Start() (*rest.Config, error) {
	direct, err := (*envtest.Environment)(e).Start()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	authorities, err := relay.NewClusterAuthorities(ctx, direct, logger)
	if err != nil {
		cancel()
		return nil, err
	}
	r, err := relay.New(relay.Options{
		Config: direct, Resources: served, ClientCAs: authorities.Pool, Impersonate: true,
		OwnConnections: true, DrainTime: time.Second, Logger: logger,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	server := httptest.NewUnstartedServer(r)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
		server.Close()
	}
	if err := r.WaitSynced(ctx); err != nil {
		return nil, err
	}
	through := rest.CopyConfig(direct)
	through.Host = server.URL
	through.CAFile, through.CAData = "", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	e.Config = through
	return through, nil
}

func (e *Environment) Stop() error {
	stop()
	return (*envtest.Environment)(e).Stop()
}
`}}
