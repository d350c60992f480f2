package cache

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// ListAll gives appendFn every object of the store that the selector matches.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	if labels.MatchesNothing(selector) {
		return nil
	}
	return appendMatching(store.List(), selector, appendFn)
}

// ListAllByNamespace gives appendFn every object of the namespace that the
// selector matches; [metav1.NamespaceAll] is every namespace.
//
// Without an index under the name [NamespaceIndex] the whole store is searched:
// slow, but the same result.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	switch {
	case labels.MatchesNothing(selector):
		return nil
	case namespace == metav1.NamespaceAll:
		return appendMatching(indexer.List(), selector, appendFn)
	}
	// Index, not ByIndex: the index function decides what the namespace's value
	// is, and users have replaced it.
	objects, err := indexer.Index(NamespaceIndex, &metav1.ObjectMeta{Namespace: namespace})
	if err != nil {
		klog.Background().Info("Listing a namespace without its index, by searching the whole store; add cache.NamespaceIndex to the informer's indexers",
			"namespace", namespace, "err", err)
		objects, err = inNamespace(indexer.List(), namespace)
		if err != nil {
			return err
		}
	}
	return appendMatching(objects, selector, appendFn)
}

// appendMatching does not look at an object if the selector matches all: reading
// labels through reflection would be most of the cost of a plain list.
func appendMatching(objects []any, selector labels.Selector, appendFn AppendFunc) error {
	all := selector.Empty()
	for _, object := range objects {
		if !all {
			accessor, err := meta.Accessor(object)
			if err != nil {
				return err
			}
			if !selector.Matches(labels.Set(accessor.GetLabels())) {
				continue
			}
		}
		appendFn(object)
	}
	return nil
}

func inNamespace(objects []any, namespace string) ([]any, error) {
	var found []any
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		if accessor.GetNamespace() == namespace {
			found = append(found, object)
		}
	}
	return found, nil
}

// NewGenericLister reads an indexer by selector and name. resource is what its
// NotFound errors name.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return lister{indexer: indexer, resource: resource}
}

// lister serves both the whole indexer and, with a namespace, one part of it:
// they differ only in how a name becomes a key.
type lister struct {
	indexer   Indexer
	resource  schema.GroupResource
	namespace string
}

func (l lister) List(selector labels.Selector) (objects []runtime.Object, err error) {
	err = ListAllByNamespace(l.indexer, l.namespace, selector, func(object any) {
		objects = append(objects, object.(runtime.Object))
	})
	return objects, err
}

func (l lister) ByNamespace(namespace string) GenericNamespaceLister {
	return namespaceLister{lister{indexer: l.indexer, resource: l.resource, namespace: namespace}}
}

func (l lister) Get(name string) (runtime.Object, error) {
	return l.get(name, name)
}

func (l lister) get(key, name string) (runtime.Object, error) {
	object, exists, err := l.indexer.GetByKey(key)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(l.resource, name)
	}
	return object.(runtime.Object), nil
}

type namespaceLister struct{ lister }

// Get joins with a slash even if the namespace is empty, so that a lister for no
// namespace finds nothing rather than a cluster-scoped object.
func (l namespaceLister) Get(name string) (runtime.Object, error) {
	return l.get(l.namespace+"/"+name, name)
}
