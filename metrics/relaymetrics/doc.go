// Package relaymetrics shows a relay to Prometheus.
//
//	prometheus.MustRegister(relaymetrics.NewCollector(r)) // r is a *relay.Relay
//
// Values are read at each scrape. The copies of the relay are shown as package metrics
// shows replicas: tarn_fresh, tarn_age_seconds, tarn_lists_total, tarn_bad_objects and so
// on, with the resource as the label replica. A relay of some namespaces has a copy for each,
// and the resource is "pods (shop)". The relay itself:
//
//	tarn_relay_ready                      gauge    -                1 while clients should be sent here
//	tarn_relay_watches                    gauge    resource         open watches
//	tarn_relay_client_watches             gauge    resource,agent   open watches by program; the first hundred programs, the rest is "other"
//	tarn_relay_deliveries_total           counter  resource         events sent to watches
//	tarn_relay_sent_bytes_total           counter  resource         bytes of answers from the copy
//	tarn_relay_received_bytes_total       counter  resource         bytes that the origin sent to keep the copy
//	tarn_relay_requests_total             counter  resource,verb    requests answered from the copy
//	tarn_relay_forwarded_total            counter  resource,cause   reads that the copy could not answer
//	tarn_relay_passed_total               counter  -                requests for resources without a copy
//	tarn_relay_refused_total              counter  cause            requests that were refused
//	tarn_relay_reviews_total              counter  -                questions to the origin about callers and their rights
//	tarn_relay_probes_total               counter  resource         requests for the newest version of the origin
//	tarn_relay_gaps_total                 counter  resource         times that states of the origin were missed
//	tarn_relay_slow_clients_total         counter  resource         watches closed because their clients did not read
//	tarn_relay_log_events                 gauge    resource         changes in the log, for watches from older versions
//	tarn_relay_log_bytes                  gauge    resource         bytes that they hold
//	tarn_relay_log_reach_seconds          gauge    resource         age of the oldest of them; not there without one
//	tarn_relay_disk_bytes                 gauge    resource         bytes in the directory, if the relay has one
//	tarn_relay_disk_failing               gauge    resource         1 while nothing can be written there
//
// The bytes that the origin did not have to send are sent minus received. [relay.Stats] and
// [relay.Health] list the causes.
package relaymetrics
