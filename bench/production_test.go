package main

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/replay"
)

// The server of the race must speak as the race says.
func TestProductionServer(t *testing.T) {
	at, stop, err := startServer(t.Context(), replay.Config{Kind: podset.ReplicaSets, Pods: 200, Formats: []replay.Format{replay.Protobuf}, Gzip: true, TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := (replay.Control{URL: at.URL}).Info(t.Context()); err != nil {
		t.Error(err)
	}
	config, err := at.config()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, at.Secure+"/api/v1/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 || response.TLS == nil || !response.Uncompressed {
		t.Errorf("HTTP/%d, TLS %v, compressed %v", response.ProtoMajor, response.TLS != nil, response.Uncompressed)
	}
}
