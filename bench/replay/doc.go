// Package replay is an API server that serves one collection of pods, encoded
// beforehand, so that a client's costs can be measured and not the server's.
//
// For clients of one collection it behaves like a kube-apiserver: discovery; lists,
// whole and in pages; watches, with initial events if requested; protobuf with its
// envelopes and frames, JSON, metadata only. The same pods are served as the custom resource
// pods.bench.example.com, in JSON only as every custom resource is.
//
// State changes only in watches: every list shows the collection as it was at
// first, so that any number of clients can be measured one after the other. What
// a watch sends is controlled by [Control.Burst].
//
// A kube-apiserver compresses lists above 128 KB when the client accepts gzip,
// as Go's clients do, but never watches. Inflating costs every client the same
// and blurs what they differ in, so it is off unless [Config.Gzip] is set.
package replay
