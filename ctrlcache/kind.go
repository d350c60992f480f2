package ctrlcache

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// form is how much of an object is kept, and as which Go type. The same resource in
// two forms is two copies, because a read must return the requested type.
type form uint8

const (
	typed form = iota
	unstructuredForm
	metadataOnly
	forms = iota
)

func formOf(object runtime.Object) form {
	switch object.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataOnly
	default:
		return typed
	}
}

// kind is a kind of the API in one form.
type kind struct {
	gvk  schema.GroupVersionKind
	form form
}

// listKind is the kind of the lists that the server sends.
func (k kind) listKind() schema.GroupVersionKind {
	return k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List")
}

// kindOf returns an object's kind.
func kindOf(object runtime.Object, scheme *runtime.Scheme) (kind, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	return kind{gvk, formOf(object)}, err
}

// kindOfItems returns the kind of a list's items.
func kindOfItems(list client.ObjectList, scheme *runtime.Scheme) (kind, error) {
	k, err := kindOf(list, scheme)
	k.gvk.Kind = strings.TrimSuffix(k.gvk.Kind, "List")
	return k, err
}

// example returns an empty object of the kind.
//
// A kind in typed form must have its list in the scheme too, as in controller-runtime.
// Most kinds without one cannot be listed, such as SubjectAccessReview or PodList: an
// informer would try for ever, and its readers would wait.
func (k kind) example(scheme *runtime.Scheme) (client.Object, error) {
	var object client.Object
	switch k.form {
	case unstructuredForm:
		object = &unstructured.Unstructured{}
	case metadataOnly:
		object = &metav1.PartialObjectMetadata{}
	default:
		made, err := scheme.New(k.gvk)
		if err != nil {
			return nil, err
		}
		if _, err := scheme.New(k.listKind()); err != nil {
			return nil, err
		}
		object, ok := made.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%v: a %T has no metadata and cannot be cached", k.gvk, made)
		}
		return object, nil
	}
	object.GetObjectKind().SetGroupVersionKind(k.gvk)
	return object, nil
}
