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
// testing/synctest bubble. [Start] makes one that listens, and [Server.Kubeconfig]
// lets kubectl find it.
//
// # What it does as the real one does
//
// Lists at every combination of resourceVersion and resourceVersionMatch, pages
// that show one version, watches with bookmarks, initial events, selectors and
// expiry, optimistic concurrency, generated names, finalizers, preconditions, dry
// runs, the status subresource, server-side tables and partial metadata, JSON,
// YAML and protobuf. Answers, errors included, have been recorded from a real
// kube-apiserver and are compared in the tests.
//
// All types of client-go's scheme are served in the versions that a current
// server has. Other kinds are added by creating a CustomResourceDefinition, or by
// [Server.Register].
//
// # What it does not
//
// It admits everybody, or everybody with a token: there is no RBAC. It validates
// metadata, and custom resources by the plain rules of their schema, but not the
// specs of built-in types; only the defaults that controllers commonly rely on
// are filled in. Server-side apply, scale, eviction, logs and the like, admission
// webhooks and conversion webhooks are not there, and managedFields are not kept.
// No controller runs: owner references collect nothing, and a deleted pod is gone
// at once.
package apiserver
