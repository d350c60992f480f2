package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func (s *Server) delete(r *request) error {
	options, err := readDeleteOptions(r)
	if err != nil {
		return err
	}
	left, gone, err := s.remove(r.endpoint, r.key(), options)
	if err != nil {
		return err
	}
	if !gone || r.echoes {
		return s.reader(r.endpoint).sendObject(r, http.StatusOK, left)
	}
	sendStatus(r.w, r.Request, r.answer.media, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: left.name(), Group: r.group, Kind: r.plural, UID: left.uid},
	})
	return nil
}

func readDeleteOptions(r *request) (*metav1.DeleteOptions, error) {
	options, err := decodeOptions(r.Request)
	if err != nil {
		return nil, err
	}
	return options, invalid("DeleteOptions", metav1validation.ValidateDeleteOptions(options))
}

func (s *Server) deleteCollection(r *request) error {
	options, err := readDeleteOptions(r)
	if err != nil {
		return err
	}
	q, err := r.parseQuery(false)
	if err != nil {
		return err
	}
	reader := s.reader(r.endpoint)
	p, err := reader.page(r.Context(), q)
	if err != nil {
		return err
	}
	options.Preconditions = nil
	for _, e := range p.entries {
		if _, _, err := s.remove(r.endpoint, e.key, options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return reader.sendPage(r, p)
}

// remove deletes an object, or marks it if finalizers or its content keep it; gone
// says which. There is no grace period, since nothing runs. Dependents are for a
// garbage collection controller, which this server does not have.
func (s *Server) remove(e *endpoint, key string, options *metav1.DeleteOptions) (left *Object, gone bool, err error) {
	for {
		before := s.state.find(e.content, key)
		if before == nil {
			return nil, false, apierrors.NewNotFound(e.groupResource(), (&Object{key: key}).name())
		}
		if e.isNamespaces() && slices.Contains(initialNamespaces, key) {
			return nil, false, apierrors.NewForbidden(e.groupResource(), key, errors.New("this namespace may not be deleted"))
		}
		if err := e.checkPreconditions(before, options.Preconditions); err != nil {
			return nil, false, err
		}
		object, err := before.object()
		if err != nil {
			return nil, false, err
		}
		switch {
		case len(options.DryRun) > 0:
			return before, finished(object), nil
		case finished(object):
			left, err = s.erase(e, before)
			gone = true
		case accessor(object).GetDeletionTimestamp() != nil:
			return before, false, nil
		default:
			left, gone, err = s.mark(e, before, object)
		}
		if !errors.Is(err, errMoved) {
			return left, gone, err
		}
	}
}

// finished says that nothing keeps an object.
func finished(object runtime.Object) bool {
	namespace, ok := object.(*corev1.Namespace)
	return len(accessor(object).GetFinalizers()) == 0 && !(ok && len(namespace.Spec.Finalizers) > 0) && !holds(object)
}

// mark records that an object must go when its last finalizer has gone.
func (s *Server) mark(e *endpoint, before *Object, object runtime.Object) (*Object, bool, error) {
	now := metav1.Now().Rfc3339Copy()
	metadata := accessor(object)
	metadata.SetDeletionTimestamp(&now)
	if !markContainer(object) {
		metadata.SetDeletionGracePeriodSeconds(ptr.To(int64(0)))
		if metadata.GetGeneration() > 0 {
			metadata.SetGeneration(metadata.GetGeneration() + 1)
		}
	}
	marked, err := s.state.commit(e.content, before.key, before, object, nil)
	if err != nil {
		return nil, false, err
	}
	return marked, false, s.empty(e, marked)
}

// erase deletes an object for good.
func (s *Server) erase(e *endpoint, before *Object) (*Object, error) {
	erased, err := s.state.commit(e.content, before.key, before, nil, nil)
	if err != nil {
		return nil, err
	}
	return erased, s.erased(e, erased)
}

func (e *endpoint) checkPreconditions(before *Object, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	kind := schema.GroupResource{Group: e.group, Resource: e.kind}
	if wanted.UID != nil && *wanted.UID != before.uid {
		return apierrors.NewConflict(kind, before.name(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *wanted.UID, before.uid))
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != versionText(before.version) {
		return apierrors.NewConflict(kind, before.name(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%d). "+
			"The object might have been modified", *wanted.ResourceVersion, before.version))
	}
	return nil
}
