package metrics

import "github.com/prometheus/client_golang/prometheus"

// metric is one name, as it is described and sent.
type metric struct {
	name   string
	kind   prometheus.ValueType
	labels []string
	desc   *prometheus.Desc
}

// all are the metrics in the order of the package's documentation, which a test
// compares with it.
var all []*metric

func gauge(name, help string, labels ...string) *metric {
	return register(name, help, prometheus.GaugeValue, labels)
}

func counter(name, help string, labels ...string) *metric {
	return register(name, help, prometheus.CounterValue, labels)
}

func register(name, help string, kind prometheus.ValueType, labels []string) *metric {
	m := &metric{name: name, kind: kind, labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, m)
	return m
}

var (
	objects     = gauge("tarn_objects", "Objects in the copy.", "replica")
	objectBytes = gauge("tarn_object_bytes", "Memory per object, about.", "replica")
	synced      = gauge("tarn_synced", "1 once the whole collection was taken.", "replica")
	fresh       = gauge("tarn_fresh", "1 while the copy follows its source and is not old.", "replica")
	failing     = gauge("tarn_failing", "1 while the copy cannot follow its source.", "replica")
	failures    = counter("tarn_failures_total", "Attempts to list or watch that failed.", "replica")
	age         = gauge("tarn_age_seconds", "Time since the last contact with the source.", "replica")
	watchAge    = gauge("tarn_watch_age_seconds", "How long the present watch has been followed.", "replica")
	badObjects  = gauge("tarn_bad_objects", "Objects that could not be taken.", "replica")
	damaged     = counter("tarn_damaged_objects_total", "Objects of the copy that a program was found to have written to by mistake.", "replica")
	repaired    = counter("tarn_repaired_objects_total", "Objects that were put right after a program had written to them.", "replica")
	events      = counter("tarn_events_total", "Events of watches, bookmarks included.", "replica")
	watches     = counter("tarn_watches_total", "Watches opened.", "replica")
	lists       = counter("tarn_lists_total", "Whole reads of the collection, by cause.", "replica", "cause")
	rewinds     = counter("tarn_rewinds_total", "Times that the source went back in time.", "replica")
	shardShare  = gauge("tarn_shard_share", "The part of the collection that the copy has, if it has a shard.", "replica")
	shardServer = gauge("tarn_shard_selected_by_server", "1 while the server sends the objects of the shard and no others.", "replica")
	shardOthers = counter("tarn_shard_dropped_total", "Objects and events of other shards that came and were dropped.", "replica")

	clusterSynced   = gauge("tarn_cluster_synced", "1 once the whole collection of the cluster was taken.", "replica", "cluster")
	clusterFresh    = gauge("tarn_cluster_fresh", "1 while the copy follows the cluster and is not old.", "replica", "cluster")
	clusterFailing  = gauge("tarn_cluster_failing", "1 while the copy cannot follow the cluster.", "replica", "cluster")
	clusterFailures = counter("tarn_cluster_failures_total", "Attempts to list or watch the cluster that failed.", "replica", "cluster")
	clusterAge      = gauge("tarn_cluster_age_seconds", "Time since the last contact with the cluster.", "replica", "cluster")
	clusterEvents   = counter("tarn_cluster_events_total", "Events of watches of the cluster, bookmarks included.", "replica", "cluster")

	pending = gauge("tarn_subscriber_pending", "Changes that a subscriber has not taken.", "replica", "subscriber")
	lag     = gauge("tarn_subscriber_lag_seconds", "How long the oldest change that a subscriber has not taken has waited.", "replica", "subscriber")

	sinkPending  = gauge("tarn_sink_pending", "Changes that are not in an engine yet.", "replica", "sink")
	sinkBytes    = gauge("tarn_sink_pending_bytes", "Size of these changes, about, if the sink bounds it.", "replica", "sink")
	sinkLag      = gauge("tarn_sink_lag_seconds", "How long the oldest change that is not in an engine has waited.", "replica", "sink")
	sinkFailing  = gauge("tarn_sink_failing", "1 while an engine cannot be written.", "replica", "sink")
	sinkFailures = counter("tarn_sink_failures_total", "Attempts to write to an engine that failed.", "replica", "sink")
	sinkBad      = gauge("tarn_sink_bad_objects", "Objects whose present state an engine refused.", "replica", "sink")
	sinkGaps     = counter("tarn_sink_gaps_total", "Gaps that were noted in an engine: states are missing there.", "replica", "sink")

	diskPending  = gauge("tarn_disk_pending", "Objects that have changed and are not on disk yet.", "replica")
	diskLag      = gauge("tarn_disk_lag_seconds", "How long the oldest change that is not on disk has waited.", "replica")
	diskFailing  = gauge("tarn_disk_failing", "1 while the copy cannot be written to disk.", "replica")
	diskFailures = counter("tarn_disk_failures_total", "Attempts to write to disk that failed.", "replica")
	diskBytes    = gauge("tarn_disk_bytes", "Size of the database.", "directory")
	diskLogBytes = gauge("tarn_disk_log_bytes", "Size of the log beside the database.", "directory")
	diskFailed   = counter("tarn_disk_failed_transactions_total", "Transactions that could not be written, of all copies in the directory.", "directory")

	decodedObjects = counter("tarn_decoded_objects_total", "Objects and events decoded.", "source")
	decodedBytes   = counter("tarn_decoded_bytes_total", "Bytes that decoded objects had on the wire.", "source")
	decodeSeconds  = counter("tarn_decode_seconds_total", "Time that decoding took, of all processors.", "source")

	poolParts       = gauge("tarn_pool_parts", "Parts of objects that can be shared.", "pool")
	poolBytes       = gauge("tarn_pool_bytes", "Memory of the parts that can be shared, about.", "pool")
	poolHits        = counter("tarn_pool_hits_total", "Parts that were found again.", "pool")
	poolMisses      = counter("tarn_pool_misses_total", "Parts that were not found.", "pool")
	poolStrayWrites = counter("tarn_pool_stray_writes_total", "Pieces of shared memory that a program was found to have written to.", "pool")
	poolVerified    = counter("tarn_pool_verified_bytes_total", "Bytes of shared memory that were verified.", "pool")
)
