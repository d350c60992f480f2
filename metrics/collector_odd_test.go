package metrics_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/metrics"
)

// What cache.ReplicaOf has for an informer that is not ours is refused, and does not end
// the process when it is read.
func TestNilReplica(t *testing.T) {
	c := metrics.NewCollector(metrics.Options{})
	replica, _ := cache.ReplicaOf(nil)
	if err := c.Add("pods", replica); err == nil || !strings.Contains(err.Error(), `"pods" is nil`) {
		t.Fatalf("error %v", err)
	}
	gather(t, c)
}

// A recheck may have any cause: one that is not UTF-8 does not break all metrics.
func TestAnyCause(t *testing.T) {
	c := metrics.NewCollector(metrics.Options{})
	if err := c.Add("x", fake{health: tarn.Health{Lists: map[string]int64{"start": 1, "b\xff": 2, "b\xfe": 3}}}); err != nil {
		t.Fatal(err)
	}
	got := gather(t, c)
	maps.DeleteFunc(got, func(key string, _ float64) bool { return !strings.Contains(key, "cause") })
	want := map[string]float64{"tarn_lists_total{cause=start,replica=x}": 1, "tarn_lists_total{cause=b?,replica=x}": 5}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Two names that become the same label do not break all metrics.
func TestNamesThatCollide(t *testing.T) {
	c := metrics.NewCollector(metrics.Options{})
	fleet := fake{health: tarn.Health{
		Sinks:    []tarn.SinkHealth{{Name: "log", Pending: 1}, {Name: "log", Pending: 2}, {Name: "log-2", Pending: 3}, {Name: "log-2", Pending: 4}},
		Sections: []tarn.Health{{Section: "b\xff", Events: 1}, {Section: "b\xfe", Events: 2}, {Section: "b?-2", Events: 3}},
	}}
	if err := c.Add("x", fleet); err != nil {
		t.Fatal(err)
	}
	if err := c.AddClusters("x", fleet); err != nil {
		t.Fatal(err)
	}
	got := gather(t, c)
	maps.DeleteFunc(got, func(key string, _ float64) bool {
		return !strings.HasPrefix(key, "tarn_sink_pending{") && !strings.HasPrefix(key, "tarn_cluster_events")
	})
	want := map[string]float64{
		"tarn_sink_pending{replica=x,sink=log}": 1, "tarn_sink_pending{replica=x,sink=log-2}": 2,
		"tarn_sink_pending{replica=x,sink=log-2-2}": 3, "tarn_sink_pending{replica=x,sink=log-2-3}": 4,
		"tarn_cluster_events_total{cluster=b?,replica=x}": 1, "tarn_cluster_events_total{cluster=b?-2,replica=x}": 2,
		"tarn_cluster_events_total{cluster=b?-2-2,replica=x}": 3,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
