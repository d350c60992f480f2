// Package metrics shows replicas to Prometheus.
//
//	collector := metrics.NewCollector(metrics.Options{})
//	collector.Add("pods", replica)                    // a *tarn.Replica of any type
//	prometheus.MustRegister(collector)
//
// A replica counts by itself whether anyone looks or not; the collector only
// reads, when it is scraped. What is behind an informer of package cache, a
// factory's or controller-runtime's included, is found by cache.ReplicaOf:
//
//	replica, _ := cache.ReplicaOf(informer)
//	collector.Add("pods", replica)
//
// What the Kubernetes source does is added beside it:
//
//	collector.AddDecoding("pods", metrics.Decoding(client.Decoded))
//	collector.AddPool("pods", metrics.Pooling(client.Pool().Stats))
//
// and so is a directory that copies are kept in:
//
//	collector.AddDisk("cache", metrics.Disk(db.Stats))
//
// # Names
//
// The label replica, source, pool or directory is the name that was given to Add,
// AddDecoding, AddPool or AddDisk.
//
//	tarn_objects                     gauge    replica             objects in the copy
//	tarn_object_bytes                gauge    replica             memory per object, about; see AddBytes
//	tarn_synced                      gauge    replica             1 once the whole collection was taken
//	tarn_fresh                       gauge    replica             1 while the copy follows its source and is not old
//	tarn_failing                     gauge    replica             1 while the copy cannot follow its source
//	tarn_failures_total              counter  replica             attempts to list or watch that failed
//	tarn_age_seconds                 gauge    replica             time since the last contact with the source
//	tarn_watch_age_seconds           gauge    replica             how long the present watch has been followed; not there without one
//	tarn_bad_objects                 gauge    replica             objects that could not be taken
//	tarn_damaged_objects_total       counter  replica             objects that a program wrote to by mistake
//	tarn_repaired_objects_total      counter  replica             objects that were put right after that
//	tarn_events_total                counter  replica             events of watches, bookmarks included
//	tarn_watches_total               counter  replica             watches opened
//	tarn_lists_total                 counter  replica,cause       whole reads of the collection
//	tarn_rewinds_total               counter  replica             times that the source went back in time
//	tarn_cluster_synced              gauge    replica,cluster     as tarn_synced, of one cluster of several; this and the next five are of replicas given to AddClusters
//	tarn_cluster_fresh               gauge    replica,cluster     as tarn_fresh
//	tarn_cluster_failing             gauge    replica,cluster     as tarn_failing
//	tarn_cluster_failures_total      counter  replica,cluster     as tarn_failures_total
//	tarn_cluster_age_seconds         gauge    replica,cluster     as tarn_age_seconds
//	tarn_cluster_events_total        counter  replica,cluster     as tarn_events_total
//	tarn_shard_share                 gauge    replica             the part of the collection that the copy has; like the next two, only of a copy of one shard
//	tarn_shard_selected_by_server    gauge    replica             1 while the server sends the objects of the shard and no others
//	tarn_shard_dropped_total         counter  replica             objects and events of other shards that came and were dropped
//	tarn_subscriber_pending          gauge    replica,subscriber  changes that a subscriber has not taken
//	tarn_subscriber_lag_seconds      gauge    replica,subscriber  how long the oldest of them has waited
//	tarn_sink_pending                gauge    replica,sink        changes that are not in an engine yet, such as Postgres; like the next six, not of a disk
//	tarn_sink_pending_bytes          gauge    replica,sink        size of these changes, about, if the sink bounds it
//	tarn_sink_lag_seconds            gauge    replica,sink        how long the oldest of these changes has waited
//	tarn_sink_failing                gauge    replica,sink        1 while the engine cannot be written
//	tarn_sink_failures_total         counter  replica,sink        attempts to write that failed
//	tarn_sink_gaps_total             counter  replica,sink        gaps that were noted there: states are missing
//	tarn_sink_bad_objects            gauge    replica,sink        objects whose present state the engine refused
//	tarn_disk_pending                gauge    replica             objects that have changed and are not on disk yet; like the next three, only of a copy that is kept there
//	tarn_disk_lag_seconds            gauge    replica             how long the oldest of these changes has waited
//	tarn_disk_failing                gauge    replica             1 while the copy cannot be written to disk
//	tarn_disk_failures_total         counter  replica             attempts to write that failed
//	tarn_disk_bytes                  gauge    directory           size of the database
//	tarn_disk_log_bytes              gauge    directory           size of the log beside it, which grows while somebody reads for long
//	tarn_disk_failed_transactions_total counter directory          transactions that could not be written, of all copies in it, those without memory in front included
//	tarn_decoded_objects_total       counter  source              objects and events decoded
//	tarn_decoded_bytes_total         counter  source              bytes that they had on the wire
//	tarn_decode_seconds_total        counter  source              time that it took, of all processors
//	tarn_pool_parts                  gauge    pool                parts of objects that can be shared
//	tarn_pool_bytes                  gauge    pool                memory of these parts, about
//	tarn_pool_hits_total             counter  pool                parts that were found again
//	tarn_pool_misses_total           counter  pool                parts that were not
//	tarn_pool_stray_writes_total     counter  pool                pieces of shared memory that a program wrote to
//	tarn_pool_verified_bytes_total   counter  pool                bytes of shared memory that were verified
//
// A read of the whole collection has the cause "start", "watch ended", "expired",
// "rewound" and the like; the first of a replica, and of each of its sections, is
// "start". Readers of Changes are the subscriber "changes".
//
// Watch tarn_fresh for alerts: it is 0 whatever the reason is. A
// tarn_damaged_objects_total above 0 is a bug in a program that reads the copy: it
// writes to objects without a DeepCopy.
package metrics
