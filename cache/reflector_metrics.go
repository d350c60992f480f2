package cache

import (
	"strconv"
	"time"

	"github.com/tarnproject/tarn"
)

// reflectorMeter reports what a reflector does to the provider that was set by
// [SetReflectorMetricsProvider]. Its nil value reports nothing.
type reflectorMeter struct {
	lists, watches, shortWatches CounterMetric
	listTime, listItems          SummaryMetric
	watchTime, watchItems        SummaryMetric
	lastVersion                  GaugeMetric
}

func newReflectorMeter(name string) *reflectorMeter {
	p := reflectorMetricsProvider()
	if p == nil {
		return nil
	}
	return &reflectorMeter{
		lists:        p.NewListsMetric(name),
		watches:      p.NewWatchesMetric(name),
		shortWatches: p.NewShortWatchesMetric(name),
		listTime:     p.NewListDurationMetric(name),
		listItems:    p.NewItemsInListMetric(name),
		watchTime:    p.NewWatchDurationMetric(name),
		watchItems:   p.NewItemsInWatchMetric(name),
		lastVersion:  p.NewLastResourceVersionMetric(name),
	}
}

// list counts a list; the returned function ends it.
func (m *reflectorMeter) list() func(items int) {
	if m == nil {
		return func(int) {}
	}
	m.lists.Inc()
	start := time.Now()
	return func(items int) {
		m.listTime.Observe(time.Since(start).Seconds())
		m.listItems.Observe(float64(items))
	}
}

// watch counts a watch; the returned function ends it.
func (m *reflectorMeter) watch() func(events int) {
	if m == nil {
		return func(int) {}
	}
	m.watches.Inc()
	start := time.Now()
	return func(events int) {
		lasted := time.Since(start)
		m.watchTime.Observe(lasted.Seconds())
		m.watchItems.Observe(float64(events))
		if events == 0 && lasted < time.Second {
			m.shortWatches.Inc()
		}
	}
}

// reached reports the version, if it is a number.
func (m *reflectorMeter) reached(v tarn.Version) {
	if m == nil {
		return
	}
	if n, err := strconv.ParseFloat(string(v), 64); err == nil {
		m.lastVersion.Set(n)
	}
}
