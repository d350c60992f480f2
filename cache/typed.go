//go:build !tarn_client_go_0_36

package cache

import (
	"fmt"
)

// NewTypedSharedIndexInformer gives an informer handlers and indexes that know the
// type of its objects. T must be the type that the informer holds; an index of
// another type reports an error, a handler of another type panics at its first
// event.
func NewTypedSharedIndexInformer[T Object](informer SharedIndexInformer) TypedSharedIndexInformer[T] {
	return typedInformer[T]{informer}
}

type typedInformer[T Object] struct {
	SharedIndexInformer
}

func (i typedInformer[T]) AddTypedEventHandler(handler TypedResourceEventHandler[T], options ...HandlerOptions) (ResourceEventHandlerRegistration, error) {
	switch len(options) {
	case 0:
		return i.AddEventHandlerWithOptions(typedHandler[T]{handler}, HandlerOptions{})
	case 1:
		return i.AddEventHandlerWithOptions(typedHandler[T]{handler}, options[0])
	}
	return nil, fmt.Errorf("the handler was not added: it has %d HandlerOptions, give it one or none", len(options))
}

func (i typedInformer[T]) AddTypedIndexers(indexers TypedIndexers[T]) error {
	return i.AddIndexers(TypedIndexersToIndexers(indexers))
}

func (i typedInformer[T]) GetTypedIndexer() TypedIndexer[T] {
	return typedIndexer[T]{i.GetIndexer()}
}

// typedHandler passes events on to a handler that wants them typed.
type typedHandler[T Object] struct {
	typed TypedResourceEventHandler[T]
}

// behind lets [handlerName] name the user's handler rather than this one.
func (h typedHandler[T]) behind() any { return h.typed }

func (h typedHandler[T]) OnAdd(obj any, isInInitialList bool) {
	h.typed.OnAdd(obj.(T), isInInitialList)
}

func (h typedHandler[T]) OnUpdate(oldObj, newObj any) {
	h.typed.OnUpdate(oldObj.(T), newObj.(T))
}

func (h typedHandler[T]) OnDelete(obj any) {
	var deleted DeletedObject[T]
	if unknown, ok := obj.(DeletedFinalStateUnknown); ok {
		deleted.FinalStateUnknown = &unknown
		obj = unknown.Obj
	}
	if obj != nil {
		deleted.OptionalObj = obj.(T)
	}
	h.typed.OnDelete(deleted)
}

// typedIndexer reads an indexer that holds only T.
type typedIndexer[T any] struct {
	Indexer
}

func (i typedIndexer[T]) TypedIndex(indexName string, obj T) ([]T, error) {
	return allTyped[T](i.Index(indexName, obj))
}

func (i typedIndexer[T]) ByTypedIndex(indexName, indexedValue string) ([]T, error) {
	return allTyped[T](i.ByIndex(indexName, indexedValue))
}

func (i typedIndexer[T]) AddTypedIndexers(newIndexers TypedIndexers[T]) error {
	return i.AddIndexers(TypedIndexersToIndexers(newIndexers))
}

func allTyped[T any](objects []any, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	typed := make([]T, len(objects))
	for i, object := range objects {
		if typed[i], err = as[T](object); err != nil {
			return nil, err
		}
	}
	return typed, nil
}

// TypedIndexersToIndexers makes each of the functions take any object.
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	untyped := make(Indexers, len(indexers))
	for name, index := range indexers {
		untyped[name] = TypedIndexerFuncToIndexerFunc(index)
	}
	return untyped
}

// TypedIndexerFuncToIndexerFunc makes an index function take any object. It
// reports an error for one that is no T, such as the bare metadata that
// [ListAllByNamespace] asks by.
func TypedIndexerFuncToIndexerFunc[T any](indexer TypedIndexFunc[T]) IndexFunc {
	return func(obj any) ([]string, error) {
		typed, err := as[T](obj)
		if err != nil {
			return nil, err
		}
		return indexer(typed)
	}
}

func as[T any](object any) (T, error) {
	typed, ok := object.(T)
	if !ok {
		return typed, fmt.Errorf("the index is typed for %T, but was given a %T", typed, object)
	}
	return typed, nil
}
