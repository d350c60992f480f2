package mirror

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one kind of object of a cluster, as discovery names it.
type Resource struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Singular   string
	ShortNames []string
	Categories []string
	Verbs      []string
}

// Name is the resource with its group: "pods", "deployments.apps". It does not
// name the version: a server holds the same objects under all of them.
func (r Resource) Name() string { return r.GVR.GroupResource().String() }

// GVK is the group, version and kind of the resource's objects.
func (r Resource) GVK() schema.GroupVersionKind { return r.GVR.GroupVersion().WithKind(r.Kind) }

// Can reports whether the server knows a verb for the resource, such as "watch".
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Secret reports whether the resource's objects have values to hide.
func (r Resource) Secret() bool {
	return r.GVR.GroupResource() == schema.GroupResource{Resource: "secrets"}
}

// copyable reports whether a copy of the resource can be kept.
func (r Resource) copyable() bool { return r.Can("list") && r.Can("watch") }
