// Package relay serves live copies of Kubernetes resources as a Kubernetes API again, with
// the versions of the origin unchanged.
//
// Every node's agents, every controller and every dashboard opens its own watches, and the
// API server encodes each event for each of them. A relay watches once:
//
//	r, err := relay.New(relay.Options{Config: config, Resources: []schema.GroupVersionResource{pods, nodes}})
//	go r.Run(ctx)
//	http.Serve(listener, r)
//
// Lists, watches, and gets with a resourceVersion of the named resources are answered
// from the copy. Everything else goes to the origin with the caller's own credentials:
// discovery, writes, other resources, logs, exec, port-forward. The relay uses its own
// only for callers with client certificates, if [Options.Impersonate] is set.
//
// Versions are the origin's. A client may change between relays and the origin with the
// version that it has, in any direction, and need not list. docs/relay.md says what a
// client sees when the origin is unreachable, has compacted its history, or went back in
// time.
package relay
