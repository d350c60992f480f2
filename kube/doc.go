// Package kube is the Kubernetes source: it lists and watches a collection of an
// API server, typed, unstructured or metadata only, and makes replicas of it.
//
//	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg)
//
// It differs from client-go in how it reads what the server says. Bodies are cut
// into objects as they arrive, never held whole, and the objects are decoded on
// all cores by package wire, which finds equal parts again instead of making them
// anew. What cannot be read is one bad object, not a failed list.
//
// Requests themselves go through client-go's rest.Config and REST client: TLS,
// credentials, exec plugins, proxies, rate limits, warnings and metrics are as
// everywhere else in the process.
package kube
