package apiserver

import (
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serveDocument answers requests about the server itself; false if the path is
// about objects.
func (s *Server) serveDocument(w http.ResponseWriter, r *http.Request, path string) bool {
	catalog := s.catalog.Load()
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var document any
	switch {
	case path == "/version":
		document = serverVersion
	case parts[0] == "openapi":
		return serveSchema(w, r, catalog, parts[1:])
	case path == "/api" || path == "/apis":
		a, err := negotiate(r, func(a answer) bool { return a.shape == whole })
		if err == nil && a.discovery != "" {
			sendDiscovery(w, r, a, catalog.discover(path == "/api", a.discovery))
			return true
		}
		document = catalog.groupList()
		if path == "/api" {
			document = &metav1.APIVersions{
				TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
				Versions:                   catalog.versions[""],
				ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
			}
		}
	case parts[0] == "api" && len(parts) == 2:
		document = catalog.resourceList(schema.GroupVersion{Version: parts[1]})
	case parts[0] == "apis" && len(parts) == 2:
		document = catalog.group(parts[1])
	case parts[0] == "apis" && len(parts) == 3:
		document = catalog.resourceList(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	if document == nil {
		http.NotFound(w, r)
		return true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		sendError(w, r, generic(http.StatusMethodNotAllowed))
		return true
	}
	a, err := negotiate(r, func(a answer) bool { return plain(a) && a.media != asProtobuf })
	if err != nil {
		a = answer{} // discovery is JSON, whatever a client would like better
	}
	data, err := encodeJSON(document)
	if err != nil {
		sendError(w, r, err)
		return true
	}
	send(w, r, http.StatusOK, a.media, body{data})
	return true
}

func (c *catalog) groupList() any {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, name := range c.groups {
		if name != "" {
			list.Groups = append(list.Groups, c.apiGroup(name))
		}
	}
	return list
}

func (c *catalog) apiGroup(name string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for _, version := range c.versions[name] {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: name, Version: version}.String(), Version: version,
		})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

// group returns nil, and not a nil pointer, for a group that is not there.
func (c *catalog) group(name string) any {
	if name == "" || len(c.versions[name]) == 0 {
		return nil
	}
	group := c.apiGroup(name)
	group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return &group
}

func (c *catalog) resourceList(gv schema.GroupVersion) any {
	if !c.has(gv) {
		return nil
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	if gv.Group == "" {
		list.TypeMeta.APIVersion = ""
	}
	for _, e := range c.of(gv) {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: e.plural, SingularName: e.singular, Namespaced: e.namespaced, Kind: e.kind,
			Verbs: e.verbs(), ShortNames: e.shortNames, Categories: e.categories,
		})
		for _, p := range e.subresources() {
			part := metav1.APIResource{Name: e.plural + "/" + p.name, Namespaced: e.namespaced, Kind: p.kind.Kind, Verbs: p.verbs}
			if p.kind.Group != e.group {
				part.Group, part.Version = p.kind.Group, p.kind.Version
			}
			list.APIResources = append(list.APIResources, part)
		}
	}
	return list
}

// subresource is a subresource in discovery.
type subresource struct {
	name  string
	kind  metav1.GroupVersionKind
	verbs []string
}

// subresources are the subresources, in the order in which real servers list them.
func (e *endpoint) subresources() (list []subresource) {
	verbs := []string{"get", "patch", "update"}
	scale := subresource{"scale", metav1.GroupVersionKind{Group: scales.group, Version: scales.version, Kind: scales.kind}, verbs}
	if e.scalable() && !e.custom {
		list = append(list, scale)
	}
	if e.status {
		list = append(list, subresource{"status", metav1.GroupVersionKind{Group: e.group, Version: e.version, Kind: e.kind}, verbs})
	}
	if e.scalable() && e.custom {
		list = append(list, scale)
	}
	if e.binds() {
		list = append(list, subresource{"binding", metav1.GroupVersionKind{Group: e.group, Version: e.version, Kind: bindings.kind}, []string{"create"}})
	}
	return list
}

// discover returns everything at once: for the core group, or for the others.
func (c *catalog) discover(legacy bool, version string) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/" + version},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, name := range c.groups {
		if (name == "") != legacy {
			continue
		}
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range c.versions[name] {
			group.Versions = append(group.Versions, c.discoverVersion(schema.GroupVersion{Group: name, Version: version}))
		}
		list.Items = append(list.Items, group)
	}
	return list
}

func (c *catalog) discoverVersion(gv schema.GroupVersion) apidiscoveryv2.APIVersionDiscovery {
	found := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, e := range c.of(gv) {
		kind := &metav1.GroupVersionKind{Group: e.group, Version: e.version, Kind: e.kind}
		r := apidiscoveryv2.APIResourceDiscovery{
			Resource: e.plural, SingularResource: e.singular, ResponseKind: kind, Scope: apidiscoveryv2.ScopeCluster,
			Verbs: e.verbs(), ShortNames: e.shortNames, Categories: e.categories,
		}
		if e.namespaced {
			r.Scope = apidiscoveryv2.ScopeNamespace
		}
		for _, p := range e.subresources() {
			r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: p.name, ResponseKind: &p.kind, Verbs: p.verbs})
		}
		found.Resources = append(found.Resources, r)
	}
	return found
}

// sendDiscovery names its format in the content type, by which clients distinguish
// it from the plain documents.
func sendDiscovery(w http.ResponseWriter, r *http.Request, a answer, list *apidiscoveryv2.APIGroupDiscoveryList) {
	data, err := encodeJSON(list)
	if err != nil {
		sendError(w, r, err)
		return
	}
	w = typedWriter{w, "application/json;g=apidiscovery.k8s.io;v=" + a.discovery + ";as=APIGroupDiscoveryList"}
	send(w, r, http.StatusOK, asJSON, body{data})
}

// typedWriter replaces the content type.
type typedWriter struct {
	http.ResponseWriter
	contentType string
}

func (w typedWriter) WriteHeader(code int) {
	w.Header().Set("Content-Type", w.contentType)
	w.ResponseWriter.WriteHeader(code)
}
