package relaymetrics_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/metrics/relaymetrics"
	"github.com/tarnproject/tarn/relay"
)

// Every series of a fleet names its cluster, and those of a cluster that is gone are gone.
func TestFleetCollector(t *testing.T) {
	f := relay.NewFleet()
	for _, name := range []string{"east", "west"} {
		r, err := relay.New(relay.Options{
			Config: &rest.Config{Host: "http://127.0.0.1:1"}, Gate: relay.Everybody{}, Logger: slog.New(slog.DiscardHandler),
			Resources: []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("pods")},
		})
		if err == nil {
			err = f.Add(name, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(relaymetrics.NewFleetCollector(f))
	count := func() map[string]int {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		series := map[string]int{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				name := ""
				for _, label := range m.GetLabel() {
					if label.GetName() == "cluster" {
						name = label.GetValue()
					}
				}
				series[name]++
			}
		}
		return series
	}
	both := count()
	if both["east"] == 0 || both["east"] != both["west"] || len(both) != 2 {
		t.Errorf("series by cluster: %v", both)
	}
	if err := f.Remove("west"); err != nil {
		t.Fatal(err)
	}
	if one := count(); one["east"] != both["east"] || len(one) != 1 {
		t.Errorf("series by cluster after one is gone: %v", one)
	}
}
