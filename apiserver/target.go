package apiserver

import (
	"net/url"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Target is what the path of a request leads to: a collection, or an object in it.
type Target struct {
	Resource  schema.GroupVersionResource
	Namespace string
	// Name is empty for a collection.
	Name        string
	Subresource string
	// Watch is for the old paths with "watch" in them.
	Watch bool
}

// ParsePath takes a path apart; false if there can be neither an object nor a
// collection.
func ParsePath(path string) (Target, bool) {
	t, ok := parsePath(strings.TrimSuffix(path, "/"))
	return Target{Resource: t.gv.WithResource(t.plural), Namespace: t.namespace, Name: t.name, Subresource: t.sub, Watch: t.watch}, ok
}

// Verb is what a GET of the target with some parameters does, in the words of authorizers:
// get, list or watch.
func (t Target) Verb(query url.Values) string { return t.target().verb(query) }

func (t Target) target() target {
	return target{gv: t.Resource.GroupVersion(), namespace: t.Namespace, plural: t.Resource.Resource, name: t.Name, sub: t.Subresource, watch: t.Watch}
}

// A Resource is a sort of object in one version, with what is needed to read its objects,
// to select among them and to show them. It is a built-in one, or has a definition.
type Resource struct {
	endpoint *endpoint
	// defined is nil for a built-in resource.
	defined *apiextensionsv1.CustomResourceDefinition
}

// BuiltinResource returns a resource whose Go type is known; false if it is not.
func BuiltinResource(resource schema.GroupVersionResource) (*Resource, bool) {
	for _, r := range builtins() {
		for _, e := range r.versions {
			if e.groupVersion().WithResource(r.plural) == resource {
				r.stored = &storage{kind: e.gvk(), known: r.stored.kind}
				return &Resource{endpoint: e}, true
			}
		}
	}
	return nil, false
}

// Kind is that of the objects.
func (r *Resource) Kind() schema.GroupVersionKind { return r.endpoint.gvk() }

// Custom says that the resource has a definition, and that objects are held as JSON.
func (r *Resource) Custom() bool { return r.endpoint.custom }

// Namespaced says whether objects are in namespaces.
func (r *Resource) Namespaced() bool { return r.endpoint.namespaced }

// HasColumns says whether the columns of tables are known; else tables show name and
// age only.
func (r *Resource) HasColumns() bool {
	_, known := builtinColumns[r.endpoint.stored.knownKind().GroupKind()]
	return known || r.Custom()
}

// KnowsFields says whether objects can be selected by the fields of a selector. A server may
// know more fields of a built-in resource than this program. A selector that cannot be read is
// refused whatever its fields are.
func (r *Resource) KnowsFields(selector string) bool {
	if r.Custom() || selector == "" {
		return true
	}
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return true
	}
	_, err = r.endpoint.checkFields(parsed)
	return err == nil
}
