package ctrlcache

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

// An indexQuery is a query to the store of an informer of ours, with the errors of
// its conditions.
//
// The store plans it: of all indexes over fields that must have a value, it takes
// the one that leads to the fewest objects; without one it reads the keys of the
// namespace. With a limit it stops when that is reached.
type indexQuery struct {
	query.Query
	failure error
}

// question translates list options to a query. nothing says that no object can
// match.
func (v readTarget) question(chosen *client.ListOptions, indexed toolscache.Indexers) (q *indexQuery, nothing bool, err error) {
	q = &indexQuery{Query: query.Where()}
	var required fields.Requirements
	if s := chosen.FieldSelector; s != nil && !s.Empty() {
		if required = s.Requirements(); len(required) == 0 {
			return nil, true, nil // fields.Nothing
		}
	}
	direct := notIndexed(required, indexed)
	namespace := v.namespaceOf(chosen.Namespace, direct)
	q.Query = q.Under(v.keysOf(namespace, direct))
	for _, r := range required {
		if _, ok := indexed[indexName(r.Field)]; ok && equal(r) {
			q.Query = q.And(query.Indexed(indexName(r.Field), indexValue(namespace, r.Value)))
			continue
		}
		c, err := v.condition(r, indexed[indexName(r.Field)])
		if err != nil {
			return nil, false, err
		}
		q.Query = q.And(q.holds(fmt.Sprint(r.Field, r.Operator, r.Value), c.match))
	}
	if chosen.LabelSelector != nil {
		return q, q.addLabels(chosen.LabelSelector), nil
	}
	return q, false, nil
}

// addLabels adds what a label selector requires, and says whether no object can
// have it. A label that somebody has indexed in the informer's memory is looked up
// there.
func (q *indexQuery) addLabels(s labels.Selector) (nothing bool) {
	if !ofLabels(s) {
		q.Query = q.And(q.holds(s.String(), func(o client.Object) (bool, error) { return s.Matches(labelsOf(o)), nil }))
		return false
	}
	required, selectable := s.Requirements()
	if !selectable {
		return true
	}
	for i := range required {
		r := &required[i]
		matches := func(o client.Object) (bool, error) { return r.Matches(labelsOf(o)), nil }
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			var values []any
			for value := range r.Values() {
				values = append(values, value)
			}
			q.Query = q.And(query.Label(r.Key()).In(values...).By(q.asked(matches)))
		default:
			q.Query = q.And(q.holds(r.String(), matches))
		}
	}
	return false
}

// ofLabels says that a selector is of package labels, whose requirements are its
// meaning. Any other selector can only be called.
func ofLabels(s labels.Selector) bool {
	return reflect.TypeOf(s).PkgPath() == reflect.TypeFor[labels.Set]().PkgPath()
}

// holds is a condition that is tested on each object.
func (q *indexQuery) holds(name string, match func(client.Object) (bool, error)) query.Condition {
	return query.Holds(name, q.asked(match))
}

func (q *indexQuery) asked(match func(client.Object) (bool, error)) func(any) bool {
	return func(stored any) bool {
		object, ok := stored.(client.Object)
		if !ok {
			return true // reported when the object is returned
		}
		ok, err := match(object)
		if err != nil && q.failure == nil {
			q.failure = err
		}
		return ok && err == nil
	}
}

// notIndexed are the requirements on fields that have no index. An index says itself what its
// field is, even if it is one that every object has.
func notIndexed(required fields.Requirements, indexed toolscache.Indexers) (direct fields.Requirements) {
	for _, r := range required {
		if _, ok := indexed[indexName(r.Field)]; !ok {
			direct = append(direct, r)
		}
	}
	return direct
}

// namespaceOf is the namespace that the objects must be of, empty for any.
func (v readTarget) namespaceOf(namespace string, required fields.Requirements) string {
	for _, r := range required {
		if r.Field == namespaceField && equal(r) && namespace == "" && v.namespaced && r.Value != "" {
			namespace = r.Value
		}
	}
	return namespace
}

// keysOf is what the keys of the objects begin with.
func (v readTarget) keysOf(namespace string, required fields.Requirements) tarn.Key {
	prefix := ""
	if namespace != "" {
		prefix = namespace + "/"
	} else if v.namespaced {
		return ""
	}
	for _, r := range required {
		if r.Field == nameField && equal(r) {
			return tarn.Key(prefix + r.Value)
		}
	}
	return tarn.Key(prefix)
}

// ask finds what is chosen in an informer's memory.
func (v readTarget) ask(store *memory.Store[any], chosen *client.ListOptions, most int) ([]any, error) {
	q, nothing, err := v.question(chosen, v.indexed(v.informer.GetIndexer()))
	if err != nil || nothing {
		return nil, err
	}
	page, err := store.Select(q.Limit(most))
	if err == nil {
		err = q.failure
	}
	return page.Objects, err
}
