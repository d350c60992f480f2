package apiserver

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// filter says which objects a client wants to see.
type filter struct {
	namespace string
	labels    labels.Selector // nil for all
	fields    fields.Selector // nil for all
}

// selects looks at the selectors, not at the namespace.
func (f *filter) selects(e *entry) bool {
	return (f.labels == nil || f.labels.Matches(e.labels)) && (f.fields == nil || f.fields.Matches(e))
}

// one returns the name of the only object that can match, if that is so.
func (f *filter) one() (string, bool) {
	if f.fields == nil || f.namespace == "" {
		return "", false
	}
	return f.fields.RequiresExactMatch("metadata.name")
}

func (f *filter) all() bool { return f.labels == nil && f.fields == nil }

// query is a list or watch request.
type query struct {
	filter
	metainternal.ListOptions
}

// parseQuery reads the options of a list or watch. watch says that it is one
// whatever the parameters say.
func (r *request) parseQuery(watch bool) (*query, error) {
	q := &query{filter: filter{namespace: r.namespace}}
	if err := metainternalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, &q.ListOptions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	q.Watch = q.Watch || watch
	if err := invalid("ListOptions", metainternalvalidation.ValidateListOptions(&q.ListOptions, true)); err != nil {
		return nil, err
	}
	if s := q.LabelSelector; s != nil && !s.Empty() {
		q.labels = s
	}
	if s := q.FieldSelector; s != nil && !s.Empty() {
		checked, err := r.checkFields(s)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		q.fields = checked
	}
	return q, nil
}

// parseVersion reads a version; 0 also stands for "".
func parseVersion(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		// A real server reads 64 bits, and names the text in its own way.
		if _, err64 := strconv.ParseUint(text, 10, 64); err64 != nil {
			err = err64
		}
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(version), nil
}

// checkReached fails for a version that lies in the future.
func (s *state) checkReached(version int64) error {
	if now := s.now(); version > now {
		return tooLarge(version, now)
	}
	return nil
}

// get reads one object.
func (s *Server) get(r *request) error {
	version, err := parseVersion(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		return apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	if err := s.state.checkReached(version); err != nil {
		return err
	}
	found := s.state.find(r.content, r.key())
	if found == nil {
		return apierrors.NewNotFound(r.groupResource(), r.name)
	}
	return s.sendEntry(r, http.StatusOK, found)
}

// sendEntry answers with one object.
func (s *Server) sendEntry(r *request, code int, e *entry) error {
	if r.answer.shape == table {
		return s.sendTable(r, code, []*entry{e}, metav1.ListMeta{ResourceVersion: versionText(e.version)})
	}
	data, err := s.state.as(e, r.form())
	if err != nil {
		return err
	}
	r.send(code, r.form().kind(), data)
	return nil
}
