package metrics

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn"
)

// sender sends metrics.
type sender chan<- prometheus.Metric

func (s sender) send(m *metric, value float64, labels ...string) {
	sent, err := prometheus.NewConstMetric(m.desc, m.kind, value, labels...)
	if err != nil {
		sent = prometheus.NewInvalidMetric(m.desc, err)
	}
	s <- sent
}

func (s sender) replica(name string, replica Observed, freshWithin time.Duration) {
	h := replica.Health()
	s.send(objects, float64(replica.Len()), name)
	s.send(synced, number(h.Synced), name)
	s.send(fresh, number(h.Fresh(freshWithin)), name)
	s.send(failing, number(h.Err != nil), name)
	s.send(failures, float64(h.AllFailures), name)
	if !h.LastContact.IsZero() {
		s.send(age, h.Age.Seconds(), name)
	}
	if !h.WatchSince.IsZero() {
		s.send(watchAge, h.WatchAge.Seconds(), name)
	}
	s.send(badObjects, float64(h.BadCount), name)
	s.send(damaged, float64(h.Damage.Found), name)
	s.send(repaired, float64(h.Damage.Repaired), name)
	s.send(events, float64(h.Events), name)
	s.send(watches, float64(h.Watches), name)
	causes := map[string]int64{}
	for cause, n := range h.Lists {
		causes[valid(cause)] += n
	}
	for cause, n := range causes {
		s.send(lists, float64(n), name, cause)
	}
	s.send(rewinds, float64(h.Rewinds), name)
	if shard := h.Shard; shard != nil {
		s.send(shardShare, shard.Share, name)
		s.send(shardServer, number(shard.ByServer), name)
		s.send(shardOthers, float64(shard.Dropped), name)
	}
	s.sinks(name, h.Sinks)
	if d := h.Disk; d != nil && (d.Name == "" || d.Name == diskName) {
		s.send(diskPending, float64(d.Pending), name)
		s.send(diskLag, d.Lag.Seconds(), name)
		s.send(diskFailing, number(d.Err != nil), name)
		s.send(diskFailures, float64(d.Failures), name)
	}
	for subscriber, l := range byName(replica.Subscribers()) {
		s.send(pending, float64(l.Pending), name, subscriber)
		s.send(lag, l.Age.Seconds(), name, subscriber)
	}
}

// clusters sends what is known of each cluster of a replica.
func (s sender) clusters(name string, replica Observed, freshWithin time.Duration) {
	names := labels{}
	for _, h := range replica.Health().Sections {
		cluster := names.own(h.Section)
		s.send(clusterSynced, number(h.Synced), name, cluster)
		s.send(clusterFresh, number(h.Fresh(freshWithin)), name, cluster)
		s.send(clusterFailing, number(h.Err != nil), name, cluster)
		s.send(clusterFailures, float64(h.AllFailures), name, cluster)
		if !h.LastContact.IsZero() {
			s.send(clusterAge, h.Age.Seconds(), name, cluster)
		}
		s.send(clusterEvents, float64(h.Events), name, cluster)
	}
}

// byName puts those together that have the same name: all that they have not
// taken, and the oldest of it.
func byName(subscribers []tarn.SubscriberLag) map[string]tarn.Lag {
	lags := map[string]tarn.Lag{}
	for _, s := range subscribers {
		name := valid(s.Name)
		if name == "" {
			name = "changes"
		}
		l := lags[name]
		lags[name] = tarn.Lag{Pending: l.Pending + s.Pending, Age: max(l.Age, s.Age)}
	}
	return lags
}

// valid is a text as a label can have it.
func valid(text string) string { return strings.ToValidUTF8(text, "?") }

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// diskName is the name of a sink that is a disk, which has metrics of its own.
const diskName = "disk"

// labels are the labels that are in use. Two metrics with the same labels would break all
// metrics of the process.
type labels map[string]bool

// own returns a text as a label of its own, with a number if the label is in use already.
func (l labels) own(text string) string {
	text = valid(text)
	label := text
	for n := 2; l[label]; n++ {
		label = fmt.Sprintf("%s-%d", text, n)
	}
	l[label] = true
	return label
}

// sinks sends what the sinks of a replica say. One that has the name of another gets a
// number.
func (s sender) sinks(replica string, all []tarn.SinkHealth) {
	names := labels{}
	for _, h := range all {
		if h.Name == diskName {
			continue
		}
		sink := names.own(h.Name)
		s.send(sinkPending, float64(h.Pending), replica, sink)
		s.send(sinkBytes, float64(h.PendingBytes), replica, sink)
		s.send(sinkLag, h.Lag.Seconds(), replica, sink)
		s.send(sinkFailing, number(h.Err != nil), replica, sink)
		s.send(sinkFailures, float64(h.Failures), replica, sink)
		s.send(sinkGaps, float64(h.Gaps), replica, sink)
		s.send(sinkBad, float64(h.BadCount), replica, sink)
	}
}
