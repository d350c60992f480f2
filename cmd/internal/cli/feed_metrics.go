package cli

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// feedFigures are the figures that Prometheus reads about the mirrors that feed an engine,
// and the answers to Kubernetes probes. The zero value is served nowhere.
type feedFigures struct {
	clusters *fedClusters
	wait     func()
}

// fedClusters are the clusters that are fed, or will be, by name. A single cluster has an
// empty name. As a collector it describes nothing in advance, because clusters come and go.
type fedClusters struct {
	freshWithin time.Duration
	mu          sync.Mutex
	by          map[string]fedCluster
}

// fedCluster is a mirror, or the reason why a cluster has no mirror yet.
type fedCluster struct {
	mirror    *mirror.Mirror
	collector prometheus.Collector
	waits     string
}

// Describe names nothing.
func (c *fedClusters) Describe(chan<- *prometheus.Desc) {}

// Collect reads the current mirrors.
func (c *fedClusters) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, one := range c.by {
		if one.collector == nil {
			continue
		}
		if name != "" {
			one.collector = prometheus.WrapCollectorWith(prometheus.Labels{"cluster": name}, one.collector)
		}
		one.collector.Collect(out)
	}
}

// unready says why nothing is fed correctly. It is empty if at least one cluster is.
func (c *fedClusters) unready() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(c.by)) {
		of := c.by[name].unready(c.freshWithin)
		if len(of) == 0 {
			return ""
		}
		for _, reason := range of {
			if name != "" {
				reason = name + ": " + reason
			}
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return "nothing is fed yet"
	}
	return strings.Join(reasons, "\n")
}

func (c fedCluster) unready(within time.Duration) []string {
	if c.mirror == nil {
		return []string{c.waits}
	}
	return c.mirror.Unready(within)
}

// ServeHTTP answers /readyz.
func (c *fedClusters) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if why := c.unready(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// serveFeedFigures serves figures and probes at the address of the options, if there is one,
// until ctx ends. A failure ends the command by giveUp.
func (a *app) serveFeedFigures(ctx context.Context, giveUp context.CancelCauseFunc, opts *feedOptions) (feedFigures, error) {
	if opts.metrics == "" {
		return feedFigures{wait: func() {}}, nil
	}
	listener, err := net.Listen("tcp", opts.metrics)
	if err != nil {
		return feedFigures{}, explainListen("--metrics", err)
	}
	registry := prometheus.NewRegistry()
	clusters := &fedClusters{freshWithin: opts.freshWithin, by: map[string]fedCluster{}}
	registry.MustRegister(clusters, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", clusters)
	fmt.Fprintf(a.out, "Metrics at http://%s/metrics\n", listener.Addr())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serveFigures(listener, mux)(ctx); err != nil {
			giveUp(err)
		}
	}()
	return feedFigures{clusters: clusters, wait: func() { <-ended }}, nil
}

// add shows a mirror, with the name of its cluster if there are several, until remove is
// called.
func (f feedFigures) add(m *mirror.Mirror, cluster string) (remove func()) {
	f.set(cluster, fedCluster{mirror: m, collector: m.Collector()})
	return func() { f.remove(cluster) }
}

// waits notes why a cluster is not fed yet.
func (f feedFigures) waits(cluster, why string) { f.set(cluster, fedCluster{waits: why}) }

func (f feedFigures) set(cluster string, c fedCluster) {
	if f.clusters == nil {
		return
	}
	f.clusters.mu.Lock()
	defer f.clusters.mu.Unlock()
	f.clusters.by[cluster] = c
}

func (f feedFigures) remove(cluster string) {
	if f.clusters == nil {
		return
	}
	f.clusters.mu.Lock()
	defer f.clusters.mu.Unlock()
	delete(f.clusters.by, cluster)
}
