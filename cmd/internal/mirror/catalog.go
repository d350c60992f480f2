package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Catalog is the resources of a server at the time of the request. It does not change.
type Catalog struct {
	// preferred has each resource once, in the server's order of groups, with the group
	// without a name first. others has their further versions.
	preferred, others []Resource
	warnings          []error
}

// Discover asks a server for its resources. It leaves out a part that cannot be read, usually
// because the aggregated API behind it is down, and adds it to [Catalog.Warnings].
func Discover(ctx context.Context, cfg *rest.Config) (*Catalog, error) {
	if cfg == nil {
		return nil, errors.New("mirror: the config is nil: get one from rest.InClusterConfig or clientcmd")
	}
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("mirror: the config of %s is not usable: %w", cfg.Host, err)
	}
	groups, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("mirror: cannot ask %s what it offers: %w", cfg.Host, err)
	}
	c := newCatalog(groups, lists)
	for gv, err := range failed {
		c.warnings = append(c.warnings, fmt.Errorf("the resources of %s are not known: %w; see kubectl get apiservices", gv, err))
	}
	slices.SortFunc(c.warnings, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return c, nil
}

// Merge combines the resources of several servers. If several have a resource, the version of
// the first one counts.
func Merge(catalogs ...*Catalog) *Catalog {
	all, seen := &Catalog{}, map[string]bool{}
	for _, c := range catalogs {
		for _, r := range c.preferred {
			if !seen[r.Name()] {
				seen[r.Name()] = true
				all.preferred = append(all.preferred, r)
			}
		}
		all.others = append(all.others, c.others...)
		all.warnings = append(all.warnings, c.warnings...)
	}
	return all
}

func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) *Catalog {
	byVersion := map[schema.GroupVersion][]Resource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue // a subresource is part of its objects
			}
			byVersion[gv] = append(byVersion[gv], Resource{
				GVR: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced, Singular: cmp.Or(r.SingularName, strings.ToLower(r.Kind)),
				ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
			})
		}
	}
	c := &Catalog{}
	ordered := slices.Clone(groups)
	slices.SortStableFunc(ordered, func(a, b *metav1.APIGroup) int { return cmp.Compare(min(len(a.Name), 1), min(len(b.Name), 1)) })
	for _, group := range ordered {
		seen := map[string]bool{}
		for _, version := range versionsOf(group) {
			for _, r := range byVersion[schema.GroupVersion{Group: group.Name, Version: version}] {
				if seen[r.GVR.Resource] {
					c.others = append(c.others, r)
				} else {
					seen[r.GVR.Resource] = true
					c.preferred = append(c.preferred, r)
				}
			}
		}
	}
	return c
}

// versionsOf returns the versions of a group, the preferred one first. A resource that is not
// in the first version is taken from the next.
func versionsOf(group *metav1.APIGroup) []string {
	versions := []string{group.PreferredVersion.Version}
	for _, v := range group.Versions {
		if v.Version != versions[0] {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

// Warnings says what could not be learned about the server.
func (c *Catalog) Warnings() []error { return slices.Clone(c.warnings) }

// All returns the resources that can be listed and watched, in the preferred version, sorted
// by name.
func (c *Catalog) All() []Resource {
	return c.sorted(func(Resource) bool { return true })
}

// Category returns the resources of All in a category, such as "all".
func (c *Catalog) Category(name string) []Resource {
	return c.sorted(func(r Resource) bool { return slices.Contains(r.Categories, strings.ToLower(name)) })
}

func (c *Catalog) sorted(wanted func(Resource) bool) []Resource {
	var found []Resource
	for _, r := range c.preferred {
		if r.copyable() && wanted(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b Resource) int { return cmp.Compare(a.Name(), b.Name()) })
	return found
}
