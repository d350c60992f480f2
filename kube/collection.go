package kube

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fieldselectors "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
)

// Collection says which objects of a server to read, and as which Go type.
type Collection struct {
	Resource schema.GroupVersionResource
	// Kind of the objects. It may be empty for unstructured objects and for
	// metadata: then any kind is accepted, and unstructured objects without a kind
	// get that of the list.
	Kind schema.GroupVersionKind
	// Object is the type of the objects: that of *corev1.Pod,
	// *unstructured.Unstructured or *metav1.PartialObjectMetadata.
	Object reflect.Type
	// Namespace narrows the collection. Empty means all namespaces, or a resource
	// without namespaces.
	Namespace string
	// LabelSelector and FieldSelector narrow it too.
	LabelSelector, FieldSelector string
	// Tweak may change the options of each request. It runs last, except that a list of one
	// item, which asks for the newest version, stays consistent and limited.
	Tweak func(*metav1.ListOptions)
}

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	metadataType     = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

// String is the name of the collection in errors: "pods (kube-system)".
func (c Collection) String() string {
	name := c.Resource.Resource
	if c.Resource.Group != "" {
		name += "." + c.Resource.Group
	}
	if c.Namespace != "" {
		name += " (" + c.Namespace + ")"
	}
	return name
}

func (c Collection) validate() error {
	switch {
	case c.Resource.Resource == "" || c.Resource.Version == "":
		return fmt.Errorf("kube: a collection needs a resource and its version, not %q; an example is {Version: \"v1\", Resource: \"pods\"}", c.Resource)
	case c.Object == nil:
		return fmt.Errorf("kube: %s: Object is missing: say which type its objects have", c)
	}
	for _, segment := range []string{c.Resource.Group, c.Resource.Version, c.Resource.Resource, c.Namespace} {
		if problems := rest.IsValidPathSegmentName(segment); len(problems) > 0 {
			return fmt.Errorf("kube: %s: %q cannot be part of a path: it %s", c, segment, problems[0])
		}
	}
	return nil
}

// path is the URL path of the collection.
func (c Collection) path() []string {
	path := []string{"apis", c.Resource.Group, c.Resource.Version}
	if c.Resource.Group == "" {
		path = []string{"api", c.Resource.Version}
	}
	if c.Namespace != "" {
		path = append(path, "namespaces", c.Namespace)
	}
	return append(path, c.Resource.Resource)
}

// only returns the collection of one of its objects. It uses a list with a
// selector, so that the permission to list is enough and get is not needed.
func (c Collection) only(key tarn.Key) Collection {
	namespace, name := splitKey(key)
	if namespace != "" {
		c.Namespace = namespace
	}
	named := fieldselectors.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	if c.FieldSelector != "" {
		named = c.FieldSelector + "," + named
	}
	c.FieldSelector = named
	return c
}

func splitKey(key tarn.Key) (namespace, name string) {
	namespace, name, ok := strings.Cut(string(key), "/")
	if !ok {
		return "", namespace
	}
	return namespace, name
}

// options completes the options of a request. Tweak is shown whether it is a watch if
// showWatch is set, and cannot change it.
func (c Collection) options(o metav1.ListOptions, showWatch bool) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = c.LabelSelector, c.FieldSelector
	if c.Tweak != nil {
		watch := o.Watch
		o.Watch = watch && showWatch
		c.Tweak(&o)
		o.Watch = watch
	}
	return o
}
