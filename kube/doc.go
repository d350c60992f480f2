// Package kube is the Kubernetes source: it lists and watches a collection of an
// API server, typed, unstructured or metadata only, and makes replicas of it.
//
//	pods, err := kube.Reflect[*corev1.Pod](ctx, cfg)
//
// It differs from client-go in how it reads responses. Bodies are cut into objects as
// they arrive, never held whole. Package wire decodes the objects on all cores, and finds
// equal parts again instead of allocating them again. An unreadable object is one bad
// object, not a failed list.
//
// Requests go through client-go's rest.Config and REST client: TLS, credentials,
// exec plugins, proxies, rate limits, warnings and metrics work as everywhere else
// in the process.
package kube
