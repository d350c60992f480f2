package web

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics answers /metrics: the mirror's tables, and the process. The registry belongs to the
// Site, so that there can be two in a process.
func (s *Site) metrics() http.Handler {
	if s.options.Metrics != nil {
		return s.options.Metrics
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.mirror.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
