package cache

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
)

func TestGaugeValue(t *testing.T) {
	for version, want := range map[string]string{
		"":                     "0 true",
		"7":                    "7 true",
		"007":                  "7 true",
		"999999999999999":      "9.99999999999999e+14 true",
		"12345678901234567890": "6.7890123456789e+14 true", // 678901234567890
		"abc":                  "0 false",
		"1.5":                  "0 false",
	} {
		n, ok := gaugeValue(version)
		if have := fmt.Sprint(n, " ", ok); have != want {
			t.Errorf("%q: %s, want %s", version, have, want)
		}
	}
}

// However its writers race, the gauge ends at the version that the store ends at.
func TestGaugeEndsAtTheStoresVersion(t *testing.T) {
	for range 20 {
		gauge := &lastValue{}
		s := NewThreadSafeStore(Indexers{}, Indices{}, WithThreadSafeStoreMetrics(reserved(t), gauge))
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := range 25 {
					s.Bookmark(strconv.Itoa(100*w + i + 1))
				}
			})
		}
		writers.Wait()
		if rv := s.LastStoreSyncResourceVersion(); rv != fmt.Sprint(gauge.value()) {
			t.Fatalf("the store is at %s, the gauge shows %v", rv, gauge.value())
		}
	}
}

func TestGaugeNeedsAReservedNameAndAProvider(t *testing.T) {
	gauge := &lastValue{}
	if g := newVersionGauge(InformerNameAndResource{}, gauge); g != nil {
		t.Error("a store without a name got a gauge")
	}
	before := providers.informer.Load()
	t.Cleanup(func() { providers.informer.Store(before) })
	providers.informer.Store(nil)
	if g := newVersionGauge(reserved(t), nil); g != nil {
		t.Error("a gauge of nobody's")
	}
	var global InformerMetricsProvider = gauge
	providers.informer.Store(&global)
	s := NewStore(MetaNamespaceKeyFunc, WithStoreMetrics(reserved(t), nil))
	s.Bookmark("8")
	if gauge.value() != 8 {
		t.Errorf("the process's own provider was shown %v", gauge.value())
	}
}
