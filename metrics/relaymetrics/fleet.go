package relaymetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn/relay"
)

// FleetCollector exports the relays of several clusters, each with the label cluster. It is
// a [prometheus.Collector]. It describes nothing beforehand, because clusters come and go.
type FleetCollector struct{ fleet *relay.Fleet }

// NewFleetCollector returns a collector of a fleet.
func NewFleetCollector(f *relay.Fleet) *FleetCollector { return &FleetCollector{f} }

// Describe names nothing.
func (*FleetCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the present relays.
func (c *FleetCollector) Collect(out chan<- prometheus.Metric) {
	for name, r := range c.fleet.Relays() {
		prometheus.WrapCollectorWith(prometheus.Labels{"cluster": name}, NewCollector(r)).Collect(out)
	}
}
