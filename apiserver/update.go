package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// updateOptions are the parameters of an update, of an object or of its scale.
func (r *request) updateOptions() (options metav1.UpdateOptions, err error) {
	query := r.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&query, &options, nil); err != nil {
		return options, apierrors.NewBadRequest(err.Error())
	}
	return options, invalid("UpdateOptions", metav1validation.ValidateUpdateOptions(&options))
}

func (s *Server) update(r *request) error {
	options, err := r.updateOptions()
	if err != nil {
		return err
	}
	object, err := r.readObject(strictness(options.FieldValidation))
	if err != nil {
		return err
	}
	updated, err := s.change(r, writeMode{dry: len(options.DryRun) > 0}, func(runtime.Object) (runtime.Object, error) {
		return object.DeepCopyObject(), nil
	})
	if err != nil {
		return err
	}
	return s.reader(r.endpoint).sendObject(r, http.StatusOK, updated)
}

// change makes the successor of an object, in the client's API version, and stores
// it. If the object changes meanwhile, it calls next again, unless the client named
// a version.
func (s *Server) change(r *request, how writeMode, next func(current runtime.Object) (runtime.Object, error)) (*Object, error) {
	for {
		before := s.state.find(r.content, r.key())
		if before == nil {
			return nil, apierrors.NewNotFound(r.groupResource(), r.name)
		}
		old, err := before.object()
		if err != nil {
			return nil, err
		}
		current, err := r.fromStored(old.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		object, err := next(current)
		if err != nil {
			return nil, err
		}
		if err := r.checkIdentity(old, object); err != nil {
			return nil, err
		}
		if object, err = r.toStored(object); err != nil {
			return nil, err
		}
		updated, err := s.replace(r.endpoint, r.sub, before, old, object, how)
		if errors.Is(err, errMoved) {
			continue
		}
		return updated, err
	}
}

// checkIdentity checks that name, namespace, uid and version of the object match
// the path and the stored object.
func (r *request) checkIdentity(old, object runtime.Object) error {
	before, after := accessor(old), accessor(object)
	if err := r.checkName(after); err != nil {
		return err
	}
	if uid := after.GetUID(); uid != "" && uid != before.GetUID() {
		return apierrors.NewConflict(r.groupResource(), r.name, fmt.Errorf("the uid in the request (%s) is not that of the object (%s)", uid, before.GetUID()))
	}
	switch version := after.GetResourceVersion(); version {
	case before.GetResourceVersion():
	case "":
		if r.custom {
			named := schema.GroupKind{Group: r.group, Kind: r.plural} // as the real server has it
			return apierrors.NewInvalid(named, r.name, field.ErrorList{field.Invalid(metadataPath.Child("resourceVersion"), 0, "must be specified for an update")})
		}
	default:
		if _, err := strconv.ParseUint(version, 10, 64); err != nil {
			return internal(err)
		}
		return apierrors.NewConflict(r.groupResource(), r.name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// checkName says whether an object is called as the path has it.
func (r *request) checkName(object metav1.Object) error {
	switch name := object.GetName(); name {
	case r.name:
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", r.name))
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, r.name))
	}
	if namespace := object.GetNamespace(); namespace != "" && namespace != r.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// replace stores object in the place of before, which decodes to old. Nothing is
// written if nothing is new. It ends an object that is on its way out when its
// last finalizer goes.
func (s *Server) replace(e *endpoint, sub string, before *Object, old, object runtime.Object, how writeMode) (*Object, error) {
	e.inherit(old, object, sub, how)
	e.setDefaults(object)
	if !how.uncounted {
		e.count(old, object)
	}
	if err := e.validateChange(old, object); err != nil {
		return nil, err
	}
	metadata := accessor(object)
	metadata.SetResourceVersion(accessor(old).GetResourceVersion())
	if apiequality.Semantic.DeepEqual(old, object) {
		return before, nil
	}
	if how.dry {
		return e.content.freeze(object, before.version)
	}
	if metadata.GetDeletionTimestamp() != nil && finished(object) {
		if _, err := s.erase(e, before); err != nil {
			return nil, err
		}
		return e.content.freeze(object, before.version)
	}
	updated, err := s.state.commit(e.content, before.key, before, object, nil)
	if err != nil {
		return nil, err
	}
	return updated, s.wrote(e, updated)
}

func (e *endpoint) validateChange(old, object runtime.Object) error {
	before, after := accessor(old), accessor(object)
	if err := e.validate(object); err != nil {
		return err
	}
	after.SetResourceVersion(before.GetResourceVersion())
	return e.problems(after.GetName(), apivalidation.ValidateObjectMetaAccessorUpdate(after, before, metadataPath))
}
