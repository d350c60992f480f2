package mirror

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn/sqlite/ondisk"
	"github.com/tarnproject/tarn/verify"
)

func TestCollector(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("a", "one", "two")
		r.put("b", "one")
		m, end := r.start(Options{Namespaces: []string{"a", "b"}}, "configmaps", "namespaces")
		defer end()
		r.synced(m)
		time.Sleep(2 * sampleEvery)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m.Collector())
		families, err := registry.Gather()
		if err != nil {
			r.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				key := f.GetName()
				for _, l := range m.GetLabel() {
					key += " " + l.GetValue()
				}
				got[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		for key, want := range map[string]float64{
			"tarn_objects configmaps": 3, "tarn_synced namespaces": 1, "tarn_lists_total start configmaps": 2,
			"tarn_object_bytes configmaps": float64(r.table(m, "configmaps").Status().BytesPerObject),
		} {
			if got[key] != want || want == 0 {
				r.Errorf("%s is %v, want %v", key, got[key], want)
			}
		}
		// Both namespaces are counted, with the bookmark that ends each.
		if n := got["tarn_decoded_objects_total configmaps"]; n != 5 {
			r.Errorf("%v objects decoded", n)
		}
		if _, ok := got["tarn_pool_parts mirror"]; !ok {
			r.Error("no pool")
		}
	})
}

// Tables can be compared with the server, also where values are hidden.
func TestTarget(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.put("a", "one", "two")
		if err := r.server.Put(secret("s", "password", map[string]string{ondisk.LastApplied: "x"})); err != nil {
			r.Fatal(err)
		}
		m, end := r.start(Options{}, "configmaps", "secrets")
		defer end()
		r.synced(m)
		for _, table := range m.Tables() {
			result, err := verify.Once(r.Context(), table.Target(), verify.Options{})
			if err != nil || result.Verdict != verify.Equal {
				r.Errorf("%s: %v, %v", table.Resource().Name(), result, err)
			}
		}
	})
}
