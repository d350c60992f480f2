package mirror

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// objectFilter selects objects by namespaces and selectors, where no server does it. A
// selector may name any field.
type objectFilter struct {
	namespaces []string
	labels     labels.Selector
	fields     []fieldTest
}

type fieldTest struct {
	path  *fieldpath.Path
	value string
	equal bool
}

func newObjectFilter(r Resource, opts Options) (objectFilter, error) {
	var s objectFilter
	if r.Namespaced && !slices.Contains(opts.Namespaces, metav1.NamespaceAll) {
		s.namespaces = opts.Namespaces
	}
	var err error
	if s.labels, err = labels.Parse(opts.LabelSelector); err != nil {
		return s, err
	}
	selector, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return s, err
	}
	for _, r := range selector.Requirements() {
		path, err := fieldpath.Parse(r.Field)
		if err != nil {
			return s, fmt.Errorf("mirror: the field selector %q makes no sense: %w", opts.FieldSelector, err)
		}
		s.fields = append(s.fields, fieldTest{path, r.Value, r.Operator != selection.NotEquals})
	}
	return s, nil
}

func (s objectFilter) passes(key tarn.Key, object Object) bool {
	if len(s.namespaces) > 0 {
		namespace, _, _ := strings.Cut(string(key), "/")
		if !slices.Contains(s.namespaces, namespace) {
			return false
		}
	}
	if !s.labels.Empty() && !s.labels.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	for _, f := range s.fields {
		text := ""
		if v, err := f.path.First(object); err == nil && !v.IsMissing() {
			text = v.String()
		}
		if (text == f.value) != f.equal {
			return false
		}
	}
	return true
}
