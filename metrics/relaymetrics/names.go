package relaymetrics

import "github.com/prometheus/client_golang/prometheus"

// metric is one name, as it is described and sent.
type metric struct {
	kind prometheus.ValueType
	desc *prometheus.Desc
}

// all are the metrics in the order of the package's documentation, which a test compares
// with it.
var all []*metric

func gauge(name, help string, labels ...string) *metric {
	return register(name, help, prometheus.GaugeValue, labels)
}

func counter(name, help string, labels ...string) *metric {
	return register(name, help, prometheus.CounterValue, labels)
}

func register(name, help string, kind prometheus.ValueType, labels []string) *metric {
	m := &metric{kind: kind, desc: prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, m)
	return m
}

var (
	ready         = gauge("tarn_relay_ready", "1 while clients should be sent here.")
	watches       = gauge("tarn_relay_watches", "Open watches.", "resource")
	clientWatches = gauge("tarn_relay_client_watches", "Open watches by program.", "resource", "agent")
	deliveries    = counter("tarn_relay_deliveries_total", "Events sent to watches.", "resource")
	sentBytes     = counter("tarn_relay_sent_bytes_total", "Bytes of answers from the copy.", "resource")
	receivedBytes = counter("tarn_relay_received_bytes_total", "Bytes that the origin sent to keep the copy.", "resource")
	requests      = counter("tarn_relay_requests_total", "Requests answered from the copy.", "resource", "verb")
	forwarded     = counter("tarn_relay_forwarded_total", "Reads that the copy could not answer, by cause.", "resource", "cause")
	passed        = counter("tarn_relay_passed_total", "Requests for resources that the relay has no copy of.")
	refused       = counter("tarn_relay_refused_total", "Requests that were refused, by cause.", "cause")
	reviews       = counter("tarn_relay_reviews_total", "Questions to the origin about callers and their rights.")
	probes        = counter("tarn_relay_probes_total", "Requests for the newest version of the origin.", "resource")
	gaps          = counter("tarn_relay_gaps_total", "Times that states of the origin were missed.", "resource")
	slowClients   = counter("tarn_relay_slow_clients_total", "Watches closed because their clients did not read.", "resource")
	logEvents     = gauge("tarn_relay_log_events", "Changes in the log, for watches from older versions.", "resource")
	logBytes      = gauge("tarn_relay_log_bytes", "Bytes that the changes in the log hold.", "resource")
	logReach      = gauge("tarn_relay_log_reach_seconds", "Age of the oldest change in the log.", "resource")
	diskBytes     = gauge("tarn_relay_disk_bytes", "Bytes in the directory.", "resource")
	diskFailing   = gauge("tarn_relay_disk_failing", "1 while nothing can be written to the directory.", "resource")
)
