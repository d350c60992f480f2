package tarn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
)

// An Index finds a replica's objects by the value that a function gives for each.
// It follows the replica like any other read. See [IndexBy].
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
// built; reads and writes go on meanwhile.
//
//   - An object for which value panics is left out of this index, and reported
//     like every object that could not be taken in full, in Health and to
//     [Options.OnBad].
//   - A store that has no indexes is walked instead: what is found is the same.
//   - Any number of goroutines may use it; each Get is of one state.
//
// For values of several fields, ranges or queries see the store's own indexes, in
// package memory.
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

// reportUnindexed reports objects that an index which was added could not take.
func (r *Replica[T]) reportUnindexed(err error) {
	some, _ := errors.AsType[ObjectErrors](err)
	for _, p := range r.sections {
		var own ObjectErrors
		for _, bad := range some {
			if bad.Key.HasPrefix(p.prefix) {
				own = append(own, bad)
			}
		}
		if own != nil {
			_ = p.reflector.rejectSome(context.Background(), own) // nothing else is in it
		}
	}
}

// Get walks the objects that have a value, in the order of keys if the store has
// one. The walk is of one state, the newest when it begins.
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

// has asks the function, where no index remembers its answer.
func (x *Index[T]) has(object T, value string) (has bool) {
	defer func() {
		if recover() != nil {
			has = false // not in the index
		}
	}()
	return x.value(object) == value
}

// Drop takes the index away. Get goes on to work, by a walk over all objects.
func (x *Index[T]) Drop() {
	if x.store != nil {
		_ = x.store.DropIndex(x.name) // it is gone, which is what was wanted
	}
}
