package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// feedFigures are what Prometheus reads of the mirrors that feed an engine. The zero value
// is served nowhere.
type feedFigures struct {
	mirrors *feedCollector
	wait    func()
}

// feedCollector collects from mirrors that come and go. It describes nothing beforehand.
type feedCollector struct {
	mu sync.Mutex
	by map[string]prometheus.Collector
}

// Describe names nothing.
func (c *feedCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the mirrors of now.
func (c *feedCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, one := range c.by {
		if name != "" {
			one = prometheus.WrapCollectorWith(prometheus.Labels{"cluster": name}, one)
		}
		one.Collect(out)
	}
}

// serveFeedFigures serves figures at an address, if there is one, until ctx ends. A failure
// ends the command by giveUp.
func (a *app) serveFeedFigures(ctx context.Context, giveUp context.CancelCauseFunc, address string) (feedFigures, error) {
	if address == "" {
		return feedFigures{wait: func() {}}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return feedFigures{}, explainListen("--metrics", err)
	}
	registry := prometheus.NewRegistry()
	mirrors := &feedCollector{by: map[string]prometheus.Collector{}}
	registry.MustRegister(mirrors, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
	return feedFigures{mirrors: mirrors, wait: func() { <-ended }}, nil
}

// add shows a mirror, with the name of its cluster if there are several, until remove is
// called.
func (f feedFigures) add(m *mirror.Mirror, cluster string) (remove func()) {
	if f.mirrors == nil {
		return func() {}
	}
	f.mirrors.mu.Lock()
	defer f.mirrors.mu.Unlock()
	f.mirrors.by[cluster] = m.Collector()
	return func() {
		f.mirrors.mu.Lock()
		defer f.mirrors.mu.Unlock()
		delete(f.mirrors.by, cluster)
	}
}
