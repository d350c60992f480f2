package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
)

func (s *Server) create(r *request) error {
	options := metav1.CreateOptions{}
	query := r.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&query, &options, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := invalid("CreateOptions", metav1validation.ValidateCreateOptions(&options)); err != nil {
		return err
	}
	object, err := r.readObject(strictness(options.FieldValidation))
	if err != nil {
		return err
	}
	stored, err := r.toStored(object)
	if err != nil {
		return err
	}
	created, err := s.add(r.endpoint, r.namespace, stored, writeMode{dry: len(options.DryRun) > 0})
	if err != nil {
		return err
	}
	return s.reader(r.endpoint).sendObject(r, http.StatusCreated, created)
}

// readObject reads the object in the body, and validates its fields as strictly as
// the request says.
func (r *request) readObject(care strictness) (runtime.Object, error) {
	written, err := bodyMedia(r.Request)
	if err != nil {
		return nil, err
	}
	data, err := readBody(r.Request)
	if err != nil {
		return nil, err
	}
	object, complaints, err := r.decode(data, written)
	if err != nil {
		return nil, err
	}
	return object, r.object(complaints, care)
}

// object handles complaints about a body: an error, warnings, or nothing.
func (r *request) object(complaints []string, care strictness) error {
	if len(complaints) == 0 || !care.complains() {
		return nil
	}
	if care == metav1.FieldValidationStrict {
		return r.strictError(complaints)
	}
	for _, c := range complaints {
		r.w.Header().Add("Warning", fmt.Sprintf("299 - %q", c))
	}
	return nil
}

// writeMode is how a write is done.
type writeMode struct {
	// dry does everything but store the object.
	dry bool
	// whole takes the status with all the rest, as no client can.
	whole bool
	// uncounted leaves the generation as it is, whatever changes.
	uncounted bool
}

// add stores a new object.
func (s *Server) add(e *endpoint, namespace string, object runtime.Object, how writeMode) (*Object, error) {
	metadata := accessor(object)
	if metadata.GetResourceVersion() != "" {
		return nil, internal(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if given := metadata.GetNamespace(); given != "" && given != namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if err := s.checkNamespace(e, namespace); err != nil {
		return nil, err
	}
	metadata.SetNamespace(namespace)
	metadata.SetUID(uuid.NewUUID())
	metadata.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	metadata.SetDeletionTimestamp(nil)
	metadata.SetDeletionGracePeriodSeconds(nil)
	metadata.SetSelfLink("")
	if e.counts {
		metadata.SetGeneration(1)
	}
	if e.status && !how.whole {
		clearStatus(object)
	}
	generated := metadata.GetName() == "" && metadata.GetGenerateName() != ""
	for attempt := 0; ; attempt++ {
		if generated {
			metadata.SetName(generateName(metadata.GetGenerateName()))
		}
		e.setDefaults(object)
		if err := e.validate(object); err != nil {
			return nil, err
		}
		created, err := s.insert(e, namespace, object, how.dry)
		if err == nil && !how.dry {
			err = s.wrote(e, created)
		}
		if err == nil {
			return created, nil
		}
		if !errors.Is(err, errMoved) {
			return nil, err
		}
		if !generated || attempt == 8 {
			return nil, apierrors.NewAlreadyExists(e.groupResource(), metadata.GetName())
		}
	}
}

func (s *Server) insert(e *endpoint, namespace string, object runtime.Object, dry bool) (*Object, error) {
	key := joinKey(namespace, accessor(object).GetName())
	if dry {
		if s.state.find(e.content, key) != nil {
			return nil, errMoved
		}
		return e.content.freeze(object, 0)
	}
	return s.state.commit(e.content, key, nil, object, func() error { return s.namespaceOpen(e, namespace) })
}

// generateName adds five random characters to a prefix, which is cut if the name
// would be longer than most kinds allow.
func generateName(prefix string) string {
	const most, random = 63, 5
	return prefix[:min(len(prefix), most-random)] + utilrand.String(random)
}
