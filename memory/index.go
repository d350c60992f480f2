package memory

import (
	"fmt"
	"slices"

	"github.com/tarnproject/tarn"
)

// IndexError says that an index function failed for an object, which therefore
// cannot be found by that index until it is written again. The object is in the
// store and in its other indexes.
type IndexError struct {
	Index string
	// Err is what the function returned or panicked with.
	Err error
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("index %q: %v; the object is kept but not found by this index: the index function has to accept it", e.Index, e.Err)
}

func (e *IndexError) Unwrap() error { return e.Err }

// index finds keys by the values that a function gives for their objects.
//
// Under which values a key stands is not remembered: when an object goes, the
// function is asked again. That is free of cost per object, but its answer is
// only a hint, for the function may fail this time, or somebody may have changed
// the object. What is remembered is in how many sets the key stands. If the hint
// leads to as many, it was right; otherwise every set is searched. So no key is
// ever left behind, and the search is paid only by who breaks the rules.
//
// Why not remember the values: a slice of strings per object and index, for
// something that almost always can be computed.
//
// Invariants, for each key in the store: count holds it unless it stands in
// exactly one set; no set is empty.
type index[T any] struct {
	function func(T) ([]string, error)
	keys     map[string]map[tarn.Key]struct{}
	count    map[tarn.Key]int
}

func newIndex[T any](function func(T) ([]string, error)) *index[T] {
	return &index[T]{
		function: function,
		keys:     map[string]map[tarn.Key]struct{}{},
		count:    map[tarn.Key]int{},
	}
}

// values asks the function, and gives each value once. A panic is an error like
// any other.
func (x *index[T]) values(object T) (values []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			if cause, ok := r.(error); ok {
				err = fmt.Errorf("the index function panicked: %w", cause)
			} else {
				err = fmt.Errorf("the index function panicked: %v", r)
			}
		}
	}()
	values, err = x.function(object)
	if err != nil {
		return nil, err
	}
	if len(values) > 1 { // the slice may be the object's own
		values = slices.Compact(slices.Sorted(slices.Values(values)))
	}
	return values, nil
}

// put moves key from where old put it, if it had one, to where object belongs:
// nowhere, if that cannot be told.
func (x *index[T]) put(key tarn.Key, old T, had bool, object T) error {
	values, err := x.values(object)
	if had {
		if x.standsAt(key, values) {
			return err
		}
		x.remove(key, old)
	}
	for _, value := range values {
		set := x.keys[value]
		if set == nil {
			set = map[tarn.Key]struct{}{}
			x.keys[value] = set
		}
		set[key] = struct{}{}
	}
	if len(values) != 1 {
		x.count[key] = len(values)
	}
	return err
}

// remove takes key, whose object is old, out of every set.
func (x *index[T]) remove(key tarn.Key, old T) {
	left := x.sets(key)
	delete(x.count, key)
	if left == 0 {
		return
	}
	hint, _ := x.values(old)
	for _, value := range hint {
		left -= x.drop(key, value)
	}
	if left == 0 {
		return
	}
	for value := range x.keys {
		left -= x.drop(key, value)
		if left == 0 {
			return
		}
	}
}

// drop takes key out of one set and says from how many it did.
func (x *index[T]) drop(key tarn.Key, value string) int {
	set := x.keys[value]
	if _, ok := set[key]; !ok {
		return 0
	}
	delete(set, key)
	if len(set) == 0 {
		delete(x.keys, value)
	}
	return 1
}

// sets counts the sets in which a key of the store stands.
func (x *index[T]) sets(key tarn.Key) int {
	if n, ok := x.count[key]; ok {
		return n
	}
	return 1
}

// standsAt says whether key is in exactly the sets of these values.
func (x *index[T]) standsAt(key tarn.Key, values []string) bool {
	if x.sets(key) != len(values) {
		return false
	}
	for _, value := range values {
		if _, ok := x.keys[value][key]; !ok {
			return false
		}
	}
	return true
}
