package memory

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/tarnproject/tarn"
)

// Store keeps objects by key, with the version that they show, and finds them
// by index. It is a [tarn.ReadStore].
//
//   - Any number of goroutines may read and write; each write is one step.
//   - What is read is a copy of the store's own books, never the books: a slice
//     or walk stays as it was, whatever is written later. The objects are not
//     copied.
//   - An object that an index cannot take is kept all the same; see [IndexError].
//
// One lock guards it all, because content, version and indexes must change in
// one step; a lock for each would let a reader see them apart.
type Store[T any] struct {
	mu      sync.RWMutex
	objects map[tarn.Key]T
	version tarn.Version
	indexes map[string]*index[T]
}

var _ tarn.ReadStore[any] = (*Store[any])(nil)

// New makes an empty store without a version.
func New[T any]() *Store[T] {
	return &Store[T]{
		objects: map[tarn.Key]T{},
		indexes: map[string]*index[T]{},
	}
}

// Get returns the object under key.
func (s *Store[T]) Get(key tarn.Key) (object T, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	object, ok = s.objects[key]
	return object, ok
}

// All walks the state that the store has when the walk begins, in no order. The
// lock is not held meanwhile, so the loop may take its time and may write.
func (s *Store[T]) All() iter.Seq2[tarn.Key, T] {
	return func(yield func(tarn.Key, T) bool) {
		for _, e := range s.snapshot() {
			if !yield(e.key, e.object) {
				return
			}
		}
	}
}

type entry[T any] struct {
	key    tarn.Key
	object T
}

func (s *Store[T]) snapshot() []entry[T] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]entry[T], 0, len(s.objects))
	for key, object := range s.objects {
		all = append(all, entry[T]{key, object})
	}
	return all
}

// Keys returns the key of every object, in no order.
func (s *Store[T]) Keys() []tarn.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]tarn.Key, 0, len(s.objects)), maps.Keys(s.objects))
}

// List returns every object, in no order.
func (s *Store[T]) List() []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]T, 0, len(s.objects)), maps.Values(s.objects))
}

// Len counts the objects.
func (s *Store[T]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Version is the state that the content shows, empty until one was written.
func (s *Store[T]) Version() tarn.Version {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Apply makes the changes in their order and moves to version v. Add and Update
// both set the key, whether it was there or not; deleting an absent key changes
// nothing. Objects that an index could not take are named in a
// [tarn.ObjectErrors]; a change that is none of the three makes Apply fail with
// nothing done.
func (s *Store[T]) Apply(changes []tarn.Change[T], v tarn.Version) error {
	for i := range changes {
		switch changes[i].Type {
		case tarn.Add, tarn.Update, tarn.Delete:
		default:
			return fmt.Errorf("change %d of %d, for %q, has type %d: a store takes only Add, Update and Delete; nothing was applied",
				i+1, len(changes), changes[i].Key, changes[i].Type)
		}
	}
	return s.Batch(func(w *Writer[T]) {
		for i := range changes {
			if c := &changes[i]; c.Type == tarn.Delete {
				w.Remove(c.Key)
			} else {
				w.Put(c.Key, c.Object)
			}
		}
		w.SetVersion(v)
	})
}

// Replace makes the items the whole content, at version v. If a key is given
// twice, the last one counts. Objects that an index could not take are named in
// a [tarn.ObjectErrors].
//
// The new map is filled before the lock is taken, so that without indexes
// readers wait only for the two maps to be exchanged. The indexes are brought
// on by what differs: a rebuilt copy of each would stand beside the old one.
func (s *Store[T]) Replace(items []tarn.Item[T], v tarn.Version) error {
	next := make(map[tarn.Key]T, len(items))
	for i := range items {
		next[items[i].Key] = items[i].Object
	}
	return s.Batch(func(w *Writer[T]) {
		w.become(next)
		w.SetVersion(v)
	})
}
