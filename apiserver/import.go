package apiserver

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Import stores objects as another server had them: with their uids, times, generations
// and marks of deletion. It does not validate them. Only versions are this server's own.
// An object whose uid differs from that of the present object replaces it as a new
// object. A namespace that is missing is made.
//
// It is for showing a client again what happened elsewhere, where owner references must still
// lead to their owners; [Server.Drop] is the other half. The caller still owns the objects.
func (s *Server) Import(objects ...runtime.Object) error {
	for _, object := range objects {
		if err := s.importObject(object); err != nil {
			return fmt.Errorf("apiserver: import %T: %w", object, err)
		}
	}
	return nil
}

func (s *Server) importObject(object runtime.Object) error {
	e, object, key, err := s.locate(object)
	if err != nil {
		return err
	}
	metadata := accessor(object)
	if e.namespaced {
		if err := s.ensureNamespace(metadata.GetNamespace()); err != nil {
			return err
		}
	}
	metadata.SetResourceVersion("")
	for {
		before := s.state.find(e.content, key)
		if before != nil && before.uid != metadata.GetUID() && !e.isNamespaces() {
			if _, err := s.erase(e, before); err != nil && !errors.Is(err, errMoved) {
				return err
			}
			continue
		}
		written, err := s.state.commit(e.content, key, before, object.DeepCopyObject(), nil)
		if err == nil {
			err = s.wrote(e, written)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

// Drop removes objects at once, by kind, namespace and name, whatever finalizers keep
// them. One that is not there is not an error.
func (s *Server) Drop(objects ...runtime.Object) error {
	for _, object := range objects {
		e, _, key, err := s.locate(object)
		for err == nil {
			before := s.state.find(e.content, key)
			if before == nil {
				break
			}
			if _, err = s.erase(e, before); errors.Is(err, errMoved) {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("apiserver: drop %T: %w", object, err)
		}
	}
	return nil
}

// locate finds where an object belongs.
func (s *Server) locate(object runtime.Object) (*endpoint, runtime.Object, string, error) {
	e, object, err := s.understand(object)
	if err != nil {
		return nil, nil, "", err
	}
	metadata := accessor(object)
	if e.namespaced && metadata.GetNamespace() == "" {
		metadata.SetNamespace(metav1.NamespaceDefault)
	}
	if metadata.GetName() == "" {
		return nil, nil, "", errors.New("it has no name")
	}
	return e, object, joinKey(metadata.GetNamespace(), metadata.GetName()), nil
}
