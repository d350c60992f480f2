package ctrlcache

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names under which every object has these fields, indexed or not.
const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// conditions are the tests that remain for each object.
type conditions []condition

type condition struct {
	// has says whether the object's field has the value.
	has func(client.Object) (bool, error)
	// not turns the answer around.
	not bool
}

func (c condition) match(object client.Object) (bool, error) {
	has, err := c.has(object)
	return has != c.not && err == nil, err
}

func (c conditions) match(object client.Object) (bool, error) {
	for _, one := range c {
		if ok, err := one.match(object); !ok {
			return false, err
		}
	}
	return true, nil
}

// filter finds what is chosen in an informer that is not ours, by what every
// informer can do; see ask for those that are.
func (v readTarget) filter(chosen *client.ListOptions, most int) ([]any, error) {
	objects, keep, err := v.candidates(chosen.Namespace, chosen.FieldSelector)
	if err != nil {
		return nil, err
	}
	var found []any
	for _, stored := range objects {
		object, ok := stored.(client.Object)
		if !ok {
			return nil, fmt.Errorf("the cache holds a %T for %v, which is not an object", stored, v.gvk)
		}
		if chosen.LabelSelector != nil && !chosen.LabelSelector.Matches(labelsOf(object)) {
			continue
		}
		switch ok, err := keep.match(object); {
		case err != nil:
			return nil, err
		case ok:
			found = append(found, stored)
		}
		if len(found) == most && most > 0 {
			break
		}
	}
	return found, nil
}

// indexed are the indexes by which fields can be found.
func (v readTarget) indexed(store toolscache.Indexer) toolscache.Indexers {
	if v.as != v.form {
		return nil // those of a fuller copy are over fields that metadata has not
	}
	return store.GetIndexers()
}

// candidates returns the objects of a namespace, or of all, that may match a field
// selector, and the conditions that remain. It finds as few as one lookup can: by
// key, by an index over a field that must have a value, by namespace.
func (v readTarget) candidates(namespace string, selector fields.Selector) ([]any, conditions, error) {
	store := v.informer.GetIndexer()
	if selector == nil || selector.Empty() {
		return v.all(store, namespace), nil, nil
	}
	required := selector.Requirements()
	if len(required) == 0 {
		return nil, nil, nil // fields.Nothing
	}
	indexed := v.indexed(store)
	namespace = v.namespaceOf(namespace, notIndexed(required, indexed))
	objects, looked, err := v.look(store, indexed, required, namespace)
	if err != nil {
		return nil, nil, err
	}
	var left conditions
	for i, r := range required {
		if i == looked {
			continue
		}
		one, err := v.condition(r, indexed[indexName(r.Field)])
		if err != nil {
			return nil, nil, err
		}
		left = append(left, one)
	}
	return objects, left, nil
}

func equal(r fields.Requirement) bool {
	return r.Operator == selection.Equals || r.Operator == selection.DoubleEquals
}

// look makes the one lookup, and returns the requirement that it covers; -1 for
// none.
func (v readTarget) look(store toolscache.Indexer, indexed toolscache.Indexers, required fields.Requirements, namespace string) ([]any, int, error) {
	for i, r := range required {
		if _, ok := indexed[indexName(r.Field)]; ok && equal(r) {
			objects, err := store.ByIndex(indexName(r.Field), indexValue(namespace, r.Value))
			return objects, i, err
		}
	}
	for i, r := range required {
		if r.Field == nameField && equal(r) && (namespace != "" || !v.namespaced) {
			object, ok, err := store.GetByKey(storeKey(client.ObjectKey{Namespace: namespace, Name: r.Value}))
			if !ok {
				return nil, i, err
			}
			return []any{object}, i, err
		}
	}
	return v.all(store, namespace), -1, nil
}

// all returns the objects of a namespace, or of all.
func (v readTarget) all(store toolscache.Indexer, namespace string) []any {
	if namespace == "" {
		return store.List()
	}
	objects, err := store.ByIndex(toolscache.NamespaceIndex, namespace)
	if err != nil {
		// A user's own informer may be without the index it was given.
		objects = slices.DeleteFunc(store.List(), func(o any) bool {
			object, ok := o.(client.Object)
			return !ok || object.GetNamespace() != namespace
		})
	}
	return objects
}

// condition is a requirement to test on each object: with its index function, if it
// has one, because only that knows what the field is; else on the object.
func (v readTarget) condition(r fields.Requirement, index toolscache.IndexFunc) (condition, error) {
	c := condition{not: r.Operator == selection.NotEquals}
	if !c.not && !equal(r) {
		return c, fmt.Errorf("field selector %s%s%s: the operator is not known to the cache", r.Field, r.Operator, r.Value)
	}
	if index != nil {
		wanted := indexValue("", r.Value)
		c.has = func(object client.Object) (bool, error) {
			values, err := index(object)
			return slices.Contains(values, wanted), err
		}
		return c, nil
	}
	read, err := v.fieldReader(r.Field)
	if err != nil {
		return c, err
	}
	c.has = func(object client.Object) (bool, error) {
		value, err := read(object)
		return value == r.Value, err
	}
	return c, nil
}
