package cache

import (
	"strconv"
	"sync"

	"github.com/tarnproject/tarn/memory"
)

// versionGauge is the metric that shows a store's version. Its nil value shows
// nothing.
//
// It reads the version from the store under its own lock instead of receiving it:
// of two writers that come here in the wrong order, the later one still shows the
// newest version, and no metric is called with the store locked.
type versionGauge struct {
	mu    sync.Mutex
	gauge GaugeMetric
}

// newVersionGauge gives the gauge of the store with this identity, nil unless
// the identity is reserved and there is someone to report to.
func newVersionGauge(id InformerNameAndResource, provider InformerMetricsProvider) *versionGauge {
	if provider == nil {
		provider = informerMetricsProvider()
	}
	if provider == nil || !id.Reserved() {
		return nil
	}
	return &versionGauge{gauge: provider.NewStoreResourceVersionMetric(id)}
}

func (g *versionGauge) show(store *memory.Store[any]) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n, ok := gaugeValue(string(store.Version())); ok {
		g.gauge.Set(n)
	}
}

// gaugeDigits is how many digits of a version fit a float64 exactly.
const gaugeDigits = 15

// gaugeValue is the end of the version, as a number: changes show there. An
// empty version is 0; one that is no number has no value.
func gaugeValue(version string) (float64, bool) {
	if version == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(version[max(0, len(version)-gaugeDigits):], 10, 64)
	return float64(n), err == nil
}
