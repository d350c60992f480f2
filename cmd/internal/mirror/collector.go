package mirror

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn/metrics"
)

// Collector exposes the mirror to Prometheus: each table under its name, and the shared pool
// and the directory as "mirror". Package metrics lists the metrics.
func (m *Mirror) Collector() prometheus.Collector {
	c := metrics.NewCollector(metrics.Options{})
	for _, t := range m.tables {
		name := t.resource.Name()
		// Names of tables are unique and not empty, which is all that could fail.
		_ = c.Add(name, t.replica)
		if m.Fleet() {
			_ = c.AddClusters(name, t.replica)
		}
		_ = c.AddBytes(name, t.weight.perObject)
		_ = c.AddDecoding(name, t.decoded)
	}
	if m.client != nil {
		_ = c.AddPool("mirror", metrics.Pooling(m.client.Pool().Stats))
	}
	if m.disk != nil {
		_ = c.AddDisk("mirror", metrics.Disk(m.disk.DB.Stats))
	}
	return c
}

// decoded is what all sources of the table have decoded.
func (t *Table) decoded() (sum metrics.Decoded) {
	for _, source := range t.Sources() {
		d := source.Decoded()
		sum.Objects += d.Objects
		sum.Bytes += d.Bytes
		sum.Time += d.Time
	}
	return sum
}
