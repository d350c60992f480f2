package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Two kinds of objects are more than objects: a namespace contains others, and a
// definition makes a resource, which contains others too. What follows from a
// write of one of them is here. It is done before the write is answered, so that
// nobody has to wait for it.

// holds says that an object cannot go without its content having gone before.
func holds(object runtime.Object) bool {
	definition, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	return ok && definition.DeletionTimestamp == nil
}

// markContainer marks an object with content as terminating; false if it has no
// content.
func markContainer(object runtime.Object) bool {
	switch o := object.(type) {
	case *corev1.Namespace:
		o.Status.Phase = corev1.NamespaceTerminating
	case *apiextensionsv1.CustomResourceDefinition:
		o.Finalizers = append(o.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
		setCondition(&o.Status, apiextensionsv1.Terminating, "InstanceDeletionPending",
			"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	default:
		return false
	}
	return true
}

// wrote is called after every write of an object that is still there.
func (s *Server) wrote(e *endpoint, written *Object) error {
	if e.isDefinitions() {
		return s.define(written.name())
	}
	return nil
}

// empty is called when an object has been marked to go.
func (s *Server) empty(e *endpoint, marked *Object) error {
	switch {
	case e.isNamespaces():
		return s.emptyNamespace(marked.name())
	case e.isDefinitions():
		for _, r := range s.catalog.Load().resources {
			if r.custom && r.plural+"."+r.group == marked.name() {
				if len(r.versions) > 0 {
					if err := s.removeAll(r.versions[0], ""); err != nil {
						return err
					}
				}
				return s.releaseDefinition(r)
			}
		}
	}
	return nil
}

// erased is called when an object is gone.
func (s *Server) erased(e *endpoint, gone *Object) error {
	if e.isDefinitions() {
		s.undefine(gone.name())
	}
	if e.custom {
		if err := s.releaseDefinition(e.resource); err != nil {
			return err
		}
	}
	if e.namespaced {
		return s.releaseNamespace(gone.namespace())
	}
	return nil
}
