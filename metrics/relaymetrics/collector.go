package relaymetrics

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/metrics"
	"github.com/tarnproject/tarn/relay"
)

// Collector exports a relay and its copies. It is a [prometheus.Collector].
type Collector struct{ relay *relay.Relay }

// NewCollector returns a collector of a relay.
func NewCollector(r *relay.Relay) *Collector { return &Collector{r} }

// copied is a copy as package metrics sees it. It has no subscribers but the relay.
type copied struct{ relay.Stats }

func (c copied) Health() tarn.Health               { return c.Stats.Health }
func (c copied) Len() int                          { return c.Objects }
func (c copied) Subscribers() []tarn.SubscriberLag { return nil }

// replicas shows the present copies: those of a custom resource come and go with
// its definition.
func (c *Collector) replicas(copies []relay.Stats) *metrics.Collector {
	shown := metrics.NewCollector(metrics.Options{FreshWithin: c.relay.FreshWithin()})
	for _, s := range copies {
		_ = shown.Add(s.Name(), copied{s}) // names differ
	}
	return shown
}

// Describe names all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	c.replicas(nil).Describe(out)
	for _, m := range all {
		out <- m.desc
	}
}

// Collect reads all figures.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	h := c.relay.Health()
	c.replicas(h.Resources).Collect(out)
	s := sender(out)
	s.send(ready, number(h.NotReady == nil))
	s.send(passed, float64(h.Passed))
	s.send(reviews, float64(h.Reviews))
	s.sendBy(refused, h.Refused)
	for _, r := range h.Resources {
		s.resource(r.Name(), r)
	}
	for key, watches := range byAgent(h.Clients) {
		s.send(clientWatches, float64(watches), key.resource, key.agent)
	}
}

// sender sends metrics.
type sender chan<- prometheus.Metric

func (s sender) send(m *metric, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func (s sender) sendBy(m *metric, counts map[string]int64, labels ...string) {
	for cause, n := range counts {
		s.send(m, float64(n), append(slices.Clip(labels), cause)...)
	}
}

func (s sender) resource(name string, r relay.Stats) {
	s.send(watches, float64(r.Watches), name)
	s.send(deliveries, float64(r.SentEvents), name)
	s.send(sentBytes, float64(r.SentBytes), name)
	s.send(receivedBytes, float64(r.ReceivedBytes), name)
	s.sendBy(requests, r.ServedBy, name)
	s.sendBy(forwarded, r.ForwardedBy, name)
	s.send(probes, float64(r.Probes), name)
	s.send(gaps, float64(r.Gaps), name)
	s.send(slowClients, float64(r.SlowClients), name)
	s.send(logEvents, float64(r.Events), name)
	s.send(logBytes, float64(r.LogBytes), name)
	if !r.LogSince.IsZero() {
		s.send(logReach, time.Since(r.LogSince).Seconds(), name)
	}
	if r.DiskBytes > 0 || r.DiskErr != nil {
		s.send(diskBytes, float64(r.DiskBytes), name)
		s.send(diskFailing, number(r.DiskErr != nil), name)
	}
}

// mostAgents bounds the series that clients can make by what they call themselves.
const mostAgents = 100

type agentKey struct{ resource, agent string }

func byAgent(clients []relay.Client) map[agentKey]int {
	total := map[string]int{}
	for _, c := range clients {
		total[c.Agent] += c.Watches
	}
	names := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		if total[a] != total[b] {
			return total[b] - total[a]
		}
		return strings.Compare(a, b)
	})
	shown := map[string]bool{}
	for _, agent := range names[:min(len(names), mostAgents)] {
		shown[agent] = true
	}
	found := map[agentKey]int{}
	for _, c := range clients {
		agent := c.Agent
		if !shown[agent] {
			agent = "other"
		}
		found[agentKey{c.Resource.GroupResource().String(), agent}] += c.Watches
	}
	return found
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
