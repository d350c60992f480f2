package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// serveMirrorMetrics serves the figures of a mirror at an address, if there is one, until
// ctx ends; the function that it returns waits for that. A failure gives the mirror up.
func (a *app) serveMirrorMetrics(ctx context.Context, giveUp context.CancelCauseFunc, address string, m *mirror.Mirror) (wait func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, explainListen("--metrics", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	fmt.Fprintf(a.out, "Metrics at http://%s/metrics\n", listener.Addr())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serveFigures(listener, mux)(ctx); err != nil {
			giveUp(err)
		}
	}()
	return func() { <-ended }, nil
}
