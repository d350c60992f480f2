package cache

import (
	"fmt"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// newEngine returns an engine that fills store: by difference if it is ours, by
// client-go's calls if not. It calls reached with each version.
func newEngine(src *source, store ReflectorStore, opts tarn.Options[any], reached func(tarn.Version)) (*tarn.Reflector[any], error) {
	told := func(v tarn.Version) {
		src.meter.reached(v)
		reached(v)
	}
	if isNil(store) {
		return nil, fmt.Errorf("%s: the store is nil: listed objects cannot be stored", src.description)
	}
	if own, ok := store.(*indexer); ok && own.transform == nil {
		src.keyOf = own.keyOf
		return tarn.NewReflector(src, ownStore{own.memory(), own, told}, opts)
	}
	src.nameless = true
	return tarn.NewReflector(src, reportingStore{foreignStore{store}, told}, opts)
}

// ownStore is an indexer of ours as the engine writes it: straight to the memory
// below, where it can be compared with.
type ownStore struct {
	*memory.Store[any]
	indexer *indexer
	reached func(tarn.Version)
}

func (s ownStore) Apply(changes []tarn.Change[any], at tarn.Position) error {
	err := s.Store.Apply(changes, at)
	s.indexer.removed.forgetWritten(changes)
	s.indexer.publish()
	s.reached(at.Version)
	return err
}

// TakeRemoved lets handlers receive the delete of an object that a program removed itself.
func (s ownStore) TakeRemoved(key tarn.Key) (any, bool) { return s.indexer.removed.TakeRemoved(key) }

// reportingStore passes on each version that a foreign store was brought to.
type reportingStore struct {
	foreignStore
	reached func(tarn.Version)
}

func (s reportingStore) Replace(items []tarn.Item[any], at tarn.Position) error {
	err := s.foreignStore.Replace(items, at)
	if err == nil {
		s.reached(at.Version)
	}
	return err
}

func (s reportingStore) Apply(changes []tarn.Change[any], at tarn.Position) error {
	err := s.foreignStore.Apply(changes, at)
	s.reached(at.Version)
	return err
}
