package apiserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// initialNamespaces are there from the beginning, and stay.
var initialNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

func (e *endpoint) isNamespaces() bool { return e.group == "" && e.plural == "namespaces" }

// checkNamespace says whether something can be created in a namespace.
func (s *Server) checkNamespace(e *endpoint, namespace string) error {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	return s.namespaceOpen(e, namespace)
}

// namespaceOpen is checkNamespace for callers that hold the lock.
func (s *Server) namespaceOpen(e *endpoint, namespace string) error {
	if !e.namespaced {
		return nil
	}
	found := s.namespaces.content.find(namespace)
	switch {
	case found == nil && s.options.AnyNamespace:
		return nil
	case found == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	case found.Get("status.phase") == string(corev1.NamespaceTerminating):
		err := apierrors.NewForbidden(e.groupResource(), "", fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
		})
		return err
	}
	return nil
}

// emptyNamespace deletes what is in a namespace that is on its way out.
func (s *Server) emptyNamespace(namespace string) error {
	for _, r := range s.catalog.Load().resources {
		if r.namespaced && len(r.versions) > 0 {
			if err := s.removeAll(r.versions[0], namespace); err != nil {
				return err
			}
		}
	}
	return s.releaseNamespace(namespace)
}

// removeAll deletes everything in a namespace, or everywhere.
func (s *Server) removeAll(e *endpoint, namespace string) error {
	entries, _, _ := s.state.snapshot(e.content, namespace, 0)
	for _, found := range entries {
		if _, _, err := s.remove(e, found.key, &metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// releaseNamespace lets a namespace go that is on its way out, once it is empty.
func (s *Server) releaseNamespace(namespace string) error {
	for {
		before := s.state.find(s.namespaces.content, namespace)
		if before == nil || before.Get("status.phase") != string(corev1.NamespaceTerminating) || !s.vacant(namespace) {
			return nil
		}
		object, err := before.object()
		if err != nil {
			return err
		}
		object.(*corev1.Namespace).Spec.Finalizers = nil
		if finished(object) {
			_, err = s.erase(s.namespaces, before)
		} else {
			_, err = s.state.commit(s.namespaces.content, namespace, before, object, nil)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

func (s *Server) vacant(namespace string) bool {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	for c := range s.state.collections {
		from, _ := c.position(namespace + "/")
		if from < len(c.entries) && c.entries[from].namespace() == namespace {
			return false
		}
	}
	return true
}
