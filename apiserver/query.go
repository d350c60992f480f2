package apiserver

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// selects looks at the selectors, not at the namespace.
func (f *Selection) selects(e *Object) bool {
	return (f.Labels == nil || f.Labels.Matches(e.labels)) && (f.Fields == nil || f.Fields.Matches(e)) && (f.Shard == nil || f.Shard.has(e))
}

// one returns the name of the only object that can match, if that is so.
func (f *Selection) one() (string, bool) {
	if f.Fields == nil || f.Namespace == "" {
		return "", false
	}
	return f.Fields.RequiresExactMatch("metadata.name")
}

func (f *Selection) all() bool { return f.Labels == nil && f.Fields == nil && f.Shard == nil }

// query is a list or watch request.
type query struct {
	Selection
	metainternal.ListOptions
}

// parseQuery reads the options of a list or watch. watch says that it is one
// whatever the parameters say.
func (r *request) parseQuery(watch bool) (*query, error) {
	q := &query{Selection: Selection{Namespace: r.namespace}}
	if err := metainternalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, &q.ListOptions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	q.Watch = q.Watch || watch
	if err := invalid("ListOptions", metainternalvalidation.ValidateListOptions(&q.ListOptions, true)); err != nil {
		return nil, err
	}
	if s := q.LabelSelector; s != nil && !s.Empty() {
		q.Labels = s
	}
	if s := q.FieldSelector; s != nil && !s.Empty() {
		checked, err := r.checkFields(s)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		q.Fields = checked
	}
	var err error
	q.Shard, err = parseShardQuery(r.URL.Query().Get("shardSelector"))
	return q, err
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
