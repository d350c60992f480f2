// Package fleet determines the clusters of a command: some contexts of a kubeconfig, or the
// kubeconfigs in a directory, which may come and go.
//
//	f, err := fleet.InDirectory("/etc/clusters", nil, logger)
//	start(f.Clusters())
//	for change := range f.Changes(ctx) { … }
package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/kube"
)

// Cluster is one of several clusters.
type Cluster struct {
	// Name is unique in the fleet, and has no slash: it is the first part of keys.
	Name   string
	Config *rest.Config

	// sum identifies the kubeconfig of the cluster.
	sum [32]byte
}

// Change is a change of a fleet. A cluster whose kubeconfig was edited is removed and added:
// it may be another cluster.
type Change struct {
	Removed []string
	Added   []Cluster
}

// Fleet is a set of clusters.
type Fleet struct {
	clusters []Cluster
	// directory is the source of the clusters; nil if they do not change.
	directory *directory
}

// Of returns a fleet that does not change.
func Of(clusters ...Cluster) (*Fleet, error) {
	if len(clusters) == 0 {
		return nil, errors.New("fleet: there are no clusters; name at least one")
	}
	seen := map[string]bool{}
	for _, c := range clusters {
		if err := kube.CheckCluster(c.Name); err != nil {
			return nil, err
		}
		if seen[c.Name] {
			return nil, fmt.Errorf("fleet: two clusters are called %q; give each a name of its own", c.Name)
		}
		seen[c.Name] = true
	}
	return &Fleet{clusters: sorted(clusters)}, nil
}

// Clusters are the clusters at the start, sorted by name.
func (f *Fleet) Clusters() []Cluster { return slices.Clone(f.clusters) }

// Changes walks the changes after [Fleet.Clusters], until ctx ends. It may be called once.
func (f *Fleet) Changes(ctx context.Context) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		if f.directory == nil {
			<-ctx.Done()
			return
		}
		f.directory.follow(ctx, f.clusters, yield)
	}
}

// NameOf returns the name of a cluster from the name of its context: slashes, which names of
// contexts have on some clouds, become colons.
func NameOf(context string) string { return strings.ReplaceAll(context, "/", ":") }

func sorted(clusters []Cluster) []Cluster {
	return slices.SortedFunc(slices.Values(clusters), func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
}

// difference returns the change from one set to another.
func difference(before, now []Cluster) (c Change) {
	for _, old := range before {
		if !same(now, old) {
			c.Removed = append(c.Removed, old.Name)
		}
	}
	for _, next := range now {
		if !same(before, next) {
			c.Added = append(c.Added, next)
		}
	}
	return c
}

// find returns the cluster of a name.
func find(all []Cluster, name string) (Cluster, bool) {
	i := slices.IndexFunc(all, func(c Cluster) bool { return c.Name == name })
	if i < 0 {
		return Cluster{}, false
	}
	return all[i], true
}

// same reports whether a set has a cluster, from the same kubeconfig.
func same(all []Cluster, c Cluster) bool {
	found, ok := find(all, c.Name)
	return ok && found.sum == c.sum
}
