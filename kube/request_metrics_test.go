package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/metrics"

	"github.com/tarnproject/tarn"
)

// measurements records what client-go's metrics receive.
type measurements struct {
	mu   sync.Mutex
	seen []string
}

func (m *measurements) add(what string, value any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, fmt.Sprint(what, " ", value))
}

type (
	latencyMeasurements struct {
		*measurements
		of string
	}
	sizeMeasurements struct {
		*measurements
		of string
	}
)

func (m latencyMeasurements) Observe(_ context.Context, verb string, u url.URL, took time.Duration) {
	m.add(verb+" "+u.String()+" "+m.of+" took time", took > 0)
}

func (m sizeMeasurements) Observe(_ context.Context, verb, host string, size float64) {
	m.add(verb+" "+host+" "+m.of, size)
}

// client-go's metrics count our lists as they count those of the clientset. They do not count
// watches, and neither does the metric of waits for the rate limit.
func TestClientOfIsMeasured(t *testing.T) {
	metric := &measurements{}
	latency, waits, request, response := metrics.RequestLatency, metrics.RateLimiterLatency, metrics.RequestSize, metrics.ResponseSize
	metrics.RequestLatency, metrics.RateLimiterLatency = latencyMeasurements{metric, "request"}, latencyMeasurements{metric, "rate limit"}
	metrics.RequestSize, metrics.ResponseSize = sizeMeasurements{metric, "request"}, sizeMeasurements{metric, "response"}
	t.Cleanup(func() {
		metrics.RequestLatency, metrics.RateLimiterLatency, metrics.RequestSize, metrics.ResponseSize = latency, waits, request, response
	})
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "south") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answer(w, jsonType, []byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	})
	cfg := s.config()
	cfg.Host += "/prefix"
	client, clientset := clientOf(t, cfg)
	for _, namespace := range []string{"", "north", "south"} {
		metric.seen = nil
		_, stock := clientset.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: "7", Limit: 3})
		want := slices.Sorted(slices.Values(metric.seen))
		metric.seen = nil
		within := pods
		within.Namespace = namespace
		source, err := NewSource[*corev1.Pod](client, within, SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := source.List(t.Context(), tarn.ListQuery{AtLeast: "7", Limit: 3}); (err == nil) != (stock == nil) {
			t.Fatal(err, stock)
		}
		if stream, err := source.Watch(t.Context(), tarn.WatchQuery{From: "7"}); err == nil {
			stream.Close()
		}
		slices.Sort(metric.seen)
		if diff := cmp.Diff(want, metric.seen); diff != "" || len(want) < 2 {
			t.Errorf("measured of %q (-clientset +ours): %s", namespace, diff)
		}
	}
}
