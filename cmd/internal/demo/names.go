package demo

import "fmt"

const (
	nameLabel   = "app.kubernetes.io/name"
	partOfLabel = "app.kubernetes.io/part-of"
	teamLabel   = "team"
	hashLabel   = "pod-template-hash"
)

// namespaces are the namespaces of the workload and what runs there.
var namespaces = []struct {
	namespace, team string
	apps            []string
}{
	{"shop", "commerce", []string{"storefront", "cart", "catalog", "checkout", "reviews"}},
	{"payments", "money", []string{"card-gateway", "ledger", "fraud-check", "invoices", "payouts"}},
	{"search", "discovery", []string{"query", "indexer", "suggest", "ranker"}},
	{"media", "discovery", []string{"thumbnails", "transcoder", "uploads", "image-proxy"}},
	{"platform", "core", []string{"api-gateway", "auth", "sessions", "notifications", "feature-flags"}},
	{"analytics", "insight", []string{"collector", "aggregator", "reports", "exporter"}},
}

// identity names an app.
type identity struct{ namespace, team, name string }

// identities names n apps: one of each namespace in turn, and with a number once
// all names are used.
func identities(n int) []identity {
	all := make([]identity, 0, n)
	for round := 0; len(all) < n; round++ {
		for _, place := range namespaces {
			name := place.apps[round%len(place.apps)]
			if again := round / len(place.apps); again > 0 {
				name = fmt.Sprintf("%s-%d", name, again+1)
			}
			if len(all) < n {
				all = append(all, identity{place.namespace, place.team, name})
			}
		}
	}
	return all
}

// Resources are the resources that the workload writes, as kubectl names them,
// the busiest first.
func Resources() []string {
	return []string{
		"pods", "events", "deployments.apps", "replicasets.apps", "endpointslices.discovery.k8s.io", "horizontalpodautoscalers.autoscaling",
		"databases." + databaseGroup, "leases.coordination.k8s.io", "nodes", "configmaps", "secrets", "services", "namespaces",
	}
}
