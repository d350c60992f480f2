package apiserver

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Put stores objects as they are, with their status: each is created, or replaces
// the one with its name. A namespace that is missing is made. The caller still owns
// the objects; the versions and uids in them do not count.
//
// It is for setting a scene. What clients would do is better done with a client.
func (s *Server) Put(objects ...runtime.Object) error {
	for _, object := range objects {
		if err := s.put(object); err != nil {
			return fmt.Errorf("apiserver: put %T: %w", object, err)
		}
	}
	return nil
}

func (s *Server) put(object runtime.Object) error {
	e, object, err := s.understand(object)
	if err != nil {
		return err
	}
	metadata := accessor(object)
	if e.namespaced {
		if metadata.GetNamespace() == "" {
			metadata.SetNamespace(metav1.NamespaceDefault)
		}
		if err := s.ensureNamespace(metadata.GetNamespace()); err != nil {
			return err
		}
	}
	metadata.SetResourceVersion("")
	key := joinKey(metadata.GetNamespace(), metadata.GetName())
	for {
		before := s.state.find(e.content, key)
		if before == nil || metadata.GetName() == "" {
			_, err := s.add(e, metadata.GetNamespace(), object.DeepCopyObject(), writeMode{whole: true})
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			return err
		}
		old, err := before.object()
		if err != nil {
			return err
		}
		if _, err := s.replace(e, "", before, old, object.DeepCopyObject(), writeMode{whole: true}); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// understand finds where an object belongs, and makes what is stored of it.
func (s *Server) understand(object runtime.Object) (*endpoint, runtime.Object, error) {
	if _, err := meta.Accessor(object); err != nil {
		return nil, nil, err
	}
	object = object.DeepCopyObject()
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil {
			return nil, nil, fmt.Errorf("%w; set its kind and apiVersion, and register the kind if it is a custom one", err)
		}
		gvk = kinds[0]
		object.GetObjectKind().SetGroupVersionKind(gvk)
	}
	e := s.catalog.Load().forKind(gvk)
	if e == nil {
		return nil, nil, fmt.Errorf("no resource of kind %s is served; create its definition, or use Register", gvk)
	}
	if _, isCustom := object.(*unstructured.Unstructured); isCustom != e.custom {
		data, err := encodeJSON(object)
		if err != nil {
			return nil, nil, err
		}
		if object, _, err = e.decode(data, asJSON); err != nil {
			return nil, nil, err
		}
	}
	stored, err := e.toStored(object)
	return e, stored, err
}

func (s *Server) ensureNamespace(name string) error {
	if s.options.AnyNamespace || s.state.find(s.namespaces.content, name) != nil {
		return nil
	}
	namespace, err := scheme.New(s.namespaces.gvk())
	if err != nil {
		return err
	}
	accessor(namespace).SetName(name)
	namespace.GetObjectKind().SetGroupVersionKind(s.namespaces.gvk())
	_, err = s.add(s.namespaces, "", namespace, writeMode{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Delete removes objects by kind, namespace and name, as a client would: finalizers
// keep them.
func (s *Server) Delete(objects ...runtime.Object) error {
	for _, object := range objects {
		e, stored, err := s.understand(object)
		if err == nil {
			metadata := accessor(stored)
			if e.namespaced && metadata.GetNamespace() == "" {
				metadata.SetNamespace(metav1.NamespaceDefault)
			}
			_, _, err = s.remove(e, joinKey(metadata.GetNamespace(), metadata.GetName()), &metav1.DeleteOptions{})
		}
		if err != nil {
			return fmt.Errorf("apiserver: delete %T: %w", object, err)
		}
	}
	return nil
}

// Version is the resourceVersion of the newest change.
func (s *Server) Version() string { return versionText(s.state.now()) }

// Compact forgets all changes up to now: watches and lists from an older version
// expire, and so do the pages of lists that began before. Open watches continue.
func (s *Server) Compact() { s.state.compact(s.state.now()) }

// Kind describes a custom resource in short.
type Kind struct {
	Group, Version, Kind string
	// Plural is the lower-case kind with an s if empty.
	Plural string
	// Cluster says that objects are not in namespaces.
	Cluster bool
	// NoStatus says that the status is not a subresource.
	NoStatus bool
}

// Register serves custom resources whose objects may hold anything. It creates
// their definition, as a client could; with a schema, create that yourself.
func (s *Server) Register(kinds ...Kind) error {
	for _, k := range kinds {
		if err := s.Put(k.definition()); err != nil {
			return err
		}
	}
	return nil
}

func (k Kind) definition() *apiextensionsv1.CustomResourceDefinition {
	plural := k.Plural
	if plural == "" {
		plural = strings.ToLower(k.Kind) + "s"
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: k.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: ptr.To(true),
		}},
	}
	if !k.NoStatus {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	scope := apiextensionsv1.NamespaceScoped
	if k.Cluster {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + k.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group, Scope: scope,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: k.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		},
	}
}
