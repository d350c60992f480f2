package memory

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tarnproject/tarn"
)

// AddIndexes adds indexes by name, over what the store holds and will hold. A
// function gives the values by which its object is to be found, any number of
// them; it is called with the store locked, must not call it, and should give
// the same values each time for the same object.
//
// A name that is taken, or a function that is nil, makes it fail with nothing
// added. A [tarn.ObjectErrors] means that the indexes were added but could not
// take the objects it names.
func (s *Store[T]) AddIndexes(functions map[string]func(T) ([]string, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := map[string]struct{}{}
	for name, function := range functions {
		if function == nil {
			return fmt.Errorf("index %q has no function: give one, or leave the name out; no index was added", name)
		}
		if _, ok := s.indexes[name]; ok {
			taken[name] = struct{}{}
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("indexer conflict: %v", taken)
	}
	w := Writer[T]{store: s}
	for name, function := range functions {
		x := newIndex(function)
		s.indexes[name] = x
		for key, object := range s.objects {
			w.note(place{key, name}, x.put(key, object, false, object))
		}
	}
	return w.err()
}

// IndexFuncs returns the function of every index, in a map of its own.
func (s *Store[T]) IndexFuncs() map[string]func(T) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	functions := make(map[string]func(T) ([]string, error), len(s.indexes))
	for name, x := range s.indexes {
		functions[name] = x.function
	}
	return functions
}

// ByIndex returns the objects that have this value, in no order.
func (s *Store[T]) ByIndex(name, value string) ([]T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return s.objectsOf(x.keys[value]), nil
}

// IndexKeys returns the keys of the objects that have this value, sorted.
func (s *Store[T]) IndexKeys(name, value string) ([]tarn.Key, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return sortedKeys(x.keys[value]), nil
}

// IndexValues returns the values that some object has, sorted.
func (s *Store[T]) IndexValues(name string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return sortedKeys(x.keys), nil
}

// Index returns the objects that share at least one value with object, which
// need not be in the store, each once and in no order. If the function fails for
// object, its error is returned as it is.
func (s *Store[T]) Index(name string, object T) ([]T, error) {
	// The function is user code and is not called with the lock held. Indexes
	// are never taken away, so x stays good in between.
	s.mu.RLock()
	x, err := s.find(name)
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	values, err := x.values(object)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(values) == 1 {
		return s.objectsOf(x.keys[values[0]]), nil
	}
	union := map[tarn.Key]struct{}{}
	for _, value := range values {
		for key := range x.keys[value] {
			union[key] = struct{}{}
		}
	}
	return s.objectsOf(union), nil
}

func (s *Store[T]) find(name string) (*index[T], error) {
	if x, ok := s.indexes[name]; ok {
		return x, nil
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name)
}

func (s *Store[T]) objectsOf(keys map[tarn.Key]struct{}) []T {
	objects := make([]T, 0, len(keys))
	for key := range keys {
		objects = append(objects, s.objects[key])
	}
	return objects
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
