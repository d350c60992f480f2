// Package apiserver is a small Kubernetes API server that lives in the process:
// discovery, reads, lists, watches and writes as clients know them, over a state
// that is kept in memory and forgotten at the end.
//
// It is for the tests of controllers, which then start in milliseconds and need
// no binaries, for demonstrations, and for the tests of this module:
//
//	server := apiserver.New(apiserver.Options{})
//	defer server.Close()
//	client := kubernetes.NewForConfigOrDie(server.Config())
//
// [New] makes a server that is an [http.Handler] and starts nothing;
// [Server.Config] then leads to it without a socket, also inside of a
// testing/synctest bubble. [Start] makes one that listens, on loopback unless the
// options say otherwise, and [Server.Kubeconfig] lets kubectl find it.
//
// For tests of bad days: [Server.Compact] forgets the past, [Server.Snapshot] and
// [Server.Restore] take the server back in time as a restored etcd does, [Server.SetTokens]
// rotates tokens. A handler around it does the rest: refuse, delay, fail.
//
// A [Reader] is the reading side by itself, over any [State]: package relay serves copies
// of another server by it.
//
// # What it does as the real one does
//
// Lists at every combination of resourceVersion and resourceVersionMatch, pages
// that show one version, watches with bookmarks, initial events, selectors and
// expiry, optimistic concurrency, generated names, finalizers, preconditions, dry
// runs, the status and scale subresources, server-side tables and partial metadata, JSON,
// YAML and protobuf, schemas for kubectl explain and for patches. Answers, errors
// included, have been recorded from a real kube-apiserver and are compared in the
// tests; and what informers see on bad days is compared end to end (module e2e).
// kubectl, controller-runtime and the real kube-controller-manager work with it.
//
// An event is encoded once for each media type, however many clients watch. A watch is
// closed if its client does not read, or falls further behind than the history reaches;
// the client then has to open it again.
//
// What a request may cost is bounded: bodies and objects to 3 MiB, what the copies of a
// JSON patch add up to as well (a limit of the library that holds for the process,
// unless the program has set it), nesting to 10,000 levels, the history by number,
// bytes and age. A server that listens closes connections that send nothing, and has a
// limit for each address.
//
// All types of client-go's scheme are served in the versions that a current
// server has. Other kinds are added by creating a CustomResourceDefinition, or by
// [Server.Register].
//
// # What it does not
//
// It admits every client, or every client with a token: there is no RBAC. It
// validates metadata, and custom resources by the plain rules of their schema, but
// not the specs of built-in types. Pods, workloads and related types get their
// defaults, without what admission adds. Server-side apply, eviction, logs and the
// like, admission webhooks and conversion webhooks are not there, and managedFields
// are not kept. No controller runs: owner references collect nothing,
// and a deleted pod is gone at once.
package apiserver
