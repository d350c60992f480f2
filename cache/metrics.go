package cache

import (
	"sync/atomic"

	upstream "k8s.io/client-go/tools/cache"
)

// providers are the metrics providers set for the whole process.
//
// client-go keeps its own out of reach, so what is set here is remembered for our
// queues, stores and reflectors and passed on for client-go's. As there, the first
// one that is set stays: metrics made before a change would otherwise keep
// reporting to the old one.
var providers struct {
	informer  atomic.Pointer[InformerMetricsProvider]
	reflector atomic.Pointer[MetricsProvider]
}

// SetInformerMetricsProvider sets where informers made from now on report their
// metrics, those of client-go included. Only the first call counts.
func SetInformerMetricsProvider(metricsProvider InformerMetricsProvider) {
	if metricsProvider != nil {
		providers.informer.CompareAndSwap(nil, &metricsProvider)
	}
	upstream.SetInformerMetricsProvider(metricsProvider)
}

// SetReflectorMetricsProvider sets where reflectors made from now on report their
// metrics, those of client-go included. Only the first call counts.
func SetReflectorMetricsProvider(metricsProvider MetricsProvider) {
	if metricsProvider != nil {
		providers.reflector.CompareAndSwap(nil, &metricsProvider)
	}
	upstream.SetReflectorMetricsProvider(metricsProvider)
}

// informerMetricsProvider is what [SetInformerMetricsProvider] was given, or nil.
func informerMetricsProvider() upstream.InformerMetricsProvider {
	if p := providers.informer.Load(); p != nil {
		return *p
	}
	return nil
}

// reflectorMetricsProvider is what [SetReflectorMetricsProvider] was given, or
// nil.
func reflectorMetricsProvider() upstream.MetricsProvider {
	if p := providers.reflector.Load(); p != nil {
		return *p
	}
	return nil
}

// queueMetrics reports on one queue. Its nil value reports nothing.
type queueMetrics struct {
	depth   GaugeMetric
	latency HistogramMetric
}

// newQueueMetrics gives the metrics of the queue with this identity, nil if it
// is not to be measured: only a reserved identity is, because two queues that
// report under one name would overwrite each other's numbers.
func newQueueMetrics(id InformerNameAndResource, provider InformerMetricsProvider) *queueMetrics {
	if provider == nil {
		provider = informerMetricsProvider()
	}
	if provider == nil || !id.Reserved() {
		return nil
	}
	return &queueMetrics{
		depth:   provider.NewQueuedItemMetric(id),
		latency: provider.NewProcessingLatencyMetric(id),
	}
}

func (m *queueMetrics) queued(n int) {
	if m != nil {
		m.depth.Set(float64(n))
	}
}

func (m *queueMetrics) processed(seconds float64) {
	if m != nil {
		m.latency.Observe(seconds)
	}
}
