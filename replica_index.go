package tarn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
)

// An Index finds a replica's objects by the value that a function returns for each.
// It is as current as other reads of the replica. See [IndexBy].
type Index[T any] struct {
	replica *Replica[T]
	value   func(T) string
	// store is nil if it cannot index.
	store IndexStore[T]
	name  string
}

// indexes counts those made by IndexBy, to name them.
var indexes atomic.Int64

// IndexBy adds an index to a replica, running or not, and returns when it is
// built. It does not block reads and writes.
//
//   - An object for which value panics is not indexed. It is reported in Health and
//     to [Options.OnBad], like every object that the store took only in part.
//   - For a store without indexes Get walks all objects; the results are the same.
//   - Any number of goroutines may use it; each Get sees one state.
//
// For indexes of several fields, ranges and queries see package memory.
func IndexBy[T any](r *Replica[T], value func(T) string) *Index[T] {
	x := &Index[T]{replica: r, value: value, name: fmt.Sprintf("IndexBy %d", indexes.Add(1))}
	store, ok := StoreAs[IndexStore[T]](r)
	if !ok {
		return x
	}
	err := store.AddIndexes(map[string]func(T) ([]string, error){
		x.name: func(object T) ([]string, error) { return []string{value(object)}, nil },
	})
	if Taken(err) {
		x.store = store
		r.reportUnindexed(err)
	}
	return x
}

// reportUnindexed reports objects that are not in a new index.
func (r *Replica[T]) reportUnindexed(err error) {
	some, _ := errors.AsType[ObjectErrors](err)
	for _, p := range r.present() {
		var own ObjectErrors
		for _, bad := range some {
			if bad.Key.HasPrefix(p.prefix) {
				own = append(own, bad)
			}
		}
		if own != nil {
			_ = p.reflector.rejectSome(context.Background(), own) // nil for an ObjectErrors
		}
	}
}

// Get walks the objects with a value, in the order of keys if the store is ordered.
// It sees one state, the newest when it begins.
func (x *Index[T]) Get(value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if x.store != nil {
			if found, err := x.store.Lookup(x.name, value); err == nil {
				for _, object := range found {
					if !yield(object) {
						return
					}
				}
				return
			}
		}
		for _, object := range x.replica.All() {
			if x.has(object, value) && !yield(object) {
				return
			}
		}
	}
}

// has calls the function, for a store without indexes.
func (x *Index[T]) has(object T, value string) (has bool) {
	defer func() {
		if recover() != nil {
			has = false // not in the index
		}
	}()
	return x.value(object) == value
}

// Drop removes the index. Get still works, by a walk over all objects.
func (x *Index[T]) Drop() {
	if x.store != nil {
		_ = x.store.DropIndex(x.name) // it fails only if there is no such index
	}
}
