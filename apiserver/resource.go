package apiserver

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// scheme knows every built-in type.
var scheme = func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(all); err != nil {
			panic(err) // two types of one name: cannot be met with the modules we are built with
		}
	}
	return all
}()

// A resource is a sort of object as clients address it. Its versions are views
// of one collection.
type resource struct {
	group, plural, singular string
	kind, listKind          string
	shortNames, categories  []string
	namespaced              bool
	// counts says that the server counts the changes of the spec.
	counts bool
	// echoes says that a delete answers with the object.
	echoes bool
	// custom resources are kept as JSON, built-in ones as protobuf.
	custom bool

	versions []*endpoint // the preferred one first
	// stored is how objects are kept, content those of this server.
	stored  *storage
	content *collection
}

func (r *resource) keeps(content *collection) {
	r.content, r.stored = content, content.storage
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

func (r *resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.group, Kind: r.kind}
}

// An endpoint is a resource in one version.
type endpoint struct {
	*resource
	version string
	// status says that the status is a subresource.
	status bool
	// definition is what the custom resource was defined with, nil if built in.
	definition *apiextensionsv1.CustomResourceDefinitionVersion
}

func (e *endpoint) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: e.group, Version: e.version}
}

func (e *endpoint) gvk() schema.GroupVersionKind { return e.groupVersion().WithKind(e.kind) }

// storedAs says whether the collection keeps its objects in just this version.
func (e *endpoint) storedAs() bool { return e.gvk() == e.stored.kind }

// verbs in the order in which real servers list them.
func (e *endpoint) verbs() []string {
	if e.group == "" && e.plural == "namespaces" {
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	if e.custom {
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}
