package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recordedQueue is a metrics provider for one queue.
type recordedQueue struct {
	depths, latencies []float64
}

type recordMetric func(float64)

func (r recordMetric) Set(v float64)     { r(v) }
func (r recordMetric) Observe(v float64) { r(v) }

func (r *recordedQueue) NewQueuedItemMetric(InformerNameAndResource) GaugeMetric {
	return recordMetric(func(v float64) { r.depths = append(r.depths, v) })
}

func (r *recordedQueue) NewProcessingLatencyMetric(InformerNameAndResource) HistogramMetric {
	return recordMetric(func(v float64) { r.latencies = append(r.latencies, v) })
}

func (r *recordedQueue) NewStoreResourceVersionMetric(InformerNameAndResource) GaugeMetric {
	return recordMetric(func(float64) {})
}

func TestQueueMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got recordedQueue
		f := NewRealFIFOWithOptions(RealFIFOOptions{
			KeyFunction: queueObjectKey, KnownObjects: &queueConsumer{},
			Identifier: reserved(t), MetricsProvider: &got,
		})
		_ = f.Add(queueObject{"a", 1})
		_ = f.Add(queueObject{"b", 1})
		_, _ = f.Pop(func(any, bool) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		if diff := cmp.Diff([]float64{1, 2, 1}, got.depths); diff != "" {
			t.Errorf("depths (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]float64{3}, got.latencies); diff != "" {
			t.Errorf("latencies (-want +got):\n%s", diff)
		}
	})
}

func TestOnlyReservedQueuesAreMeasured(t *testing.T) {
	if newQueueMetrics(InformerNameAndResource{}, &recordedQueue{}) != nil {
		t.Error("a queue without an identity is measured")
	}
	if newQueueMetrics(reserved(t), nil) != nil {
		t.Error("a queue is measured without a provider")
	}
}

func TestFirstProviderStays(t *testing.T) {
	t.Cleanup(func() {
		providers.informer.Store(nil)
		providers.reflector.Store(nil)
	})
	if informerMetricsProvider() != nil || reflectorMetricsProvider() != nil {
		t.Fatal("a provider nobody set")
	}
	first, second := &recordedQueue{}, &recordedQueue{}
	SetInformerMetricsProvider(first)
	SetInformerMetricsProvider(second)
	if got := informerMetricsProvider(); got != first {
		t.Errorf("got %p, want the first one, %p", got, first)
	}
	// client-go v0.37.2 never calls a method of its provider.
	a, b := &struct{ MetricsProvider }{}, &struct{ MetricsProvider }{}
	SetReflectorMetricsProvider(a)
	SetReflectorMetricsProvider(b)
	if got := reflectorMetricsProvider(); got != a {
		t.Errorf("got %p, want the first one, %p", got, a)
	}
}
