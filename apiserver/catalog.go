package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// catalog is what is served: an immutable table, replaced as a whole when a
// definition comes, changes or goes, so that a request sees one of them.
type catalog struct {
	resources []*resource
	endpoints map[schema.GroupVersionResource]*endpoint
	// groups in the order of discovery, with their versions, preferred first.
	groups   []string
	versions map[string][]string
}

func newCatalog(builtin, custom []*resource) *catalog {
	c := &catalog{
		resources: slices.Concat(builtin, custom),
		endpoints: map[schema.GroupVersionResource]*endpoint{},
		versions:  map[string][]string{},
	}
	for _, r := range c.resources {
		for _, e := range r.versions {
			gvr := e.groupVersion().WithResource(r.plural)
			if _, taken := c.endpoints[gvr]; taken {
				continue
			}
			c.endpoints[gvr] = e
			if !slices.Contains(c.groups, e.group) {
				c.groups = append(c.groups, e.group)
			}
			if !slices.Contains(c.versions[e.group], e.version) {
				c.versions[e.group] = append(c.versions[e.group], e.version)
			}
		}
	}
	for _, versions := range c.versions {
		slices.SortStableFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	}
	return c
}

// of returns the endpoints of a group version in the order of discovery.
func (c *catalog) of(gv schema.GroupVersion) []*endpoint {
	var found []*endpoint
	for _, r := range c.resources {
		for _, e := range r.versions {
			if e.groupVersion() == gv && c.endpoints[gv.WithResource(r.plural)] == e {
				found = append(found, e)
			}
		}
	}
	return found
}

// forKind returns the endpoint of a kind, nil if it is not served.
func (c *catalog) forKind(gvk schema.GroupVersionKind) *endpoint {
	for _, e := range c.of(gvk.GroupVersion()) {
		if e.kind == gvk.Kind {
			return e
		}
	}
	return nil
}

func (c *catalog) has(gv schema.GroupVersion) bool {
	return slices.Contains(c.versions[gv.Group], gv.Version)
}
