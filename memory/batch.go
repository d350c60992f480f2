package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
)

// Writer makes the writes of one [Store.Batch]. It is of use only until the
// function that was given it returns.
type Writer[T any] struct {
	store *Store[T]
	// failed is what the batch leaves out of an index. A later write to the same
	// key in the same batch settles it anew, so that only what still holds at
	// the end is reported.
	failed map[place]error
}

// place is one key in one index.
type place struct {
	key   tarn.Key
	index string
}

// Batch runs write with the store locked, so that all it writes appears at once.
// write must neither call the store nor wait for anyone who does.
//
// The error is a [tarn.ObjectErrors] that names the objects which some index
// could not take. They are stored nevertheless.
//
// Why a function and not a list of operations: whoever has a list of his own
// need not first rewrite it into ours.
func (s *Store[T]) Batch(write func(w *Writer[T])) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := Writer[T]{store: s}
	write(&w)
	return w.err()
}

// Put sets the object under key. See [Store.Batch] for the error.
func (s *Store[T]) Put(key tarn.Key, object T) error {
	return s.Batch(func(w *Writer[T]) { w.Put(key, object) })
}

// Remove takes the object under key away, if there is one.
func (s *Store[T]) Remove(key tarn.Key) {
	_ = s.Batch(func(w *Writer[T]) { w.Remove(key) }) // removing cannot fail
}

// SetVersion moves the version alone.
func (s *Store[T]) SetVersion(v tarn.Version) {
	_ = s.Batch(func(w *Writer[T]) { w.SetVersion(v) }) // nothing to index
}

// Put sets the object under key.
func (w *Writer[T]) Put(key tarn.Key, object T) {
	old, had := w.store.objects[key]
	w.store.objects[key] = object
	w.index(key, old, had, object)
}

// Remove takes the object under key away, if there is one.
func (w *Writer[T]) Remove(key tarn.Key) {
	old, had := w.store.objects[key]
	if !had {
		return
	}
	delete(w.store.objects, key)
	w.unindex(key, old)
}

// SetVersion sets the version that the content shows once the batch is done.
func (w *Writer[T]) SetVersion(v tarn.Version) {
	w.store.version = v
}

// become makes next the content, and keeps it.
func (w *Writer[T]) become(next map[tarn.Key]T) {
	last := w.store.objects
	w.store.objects = next
	if len(w.store.indexes) == 0 {
		return
	}
	for key, old := range last {
		if _, stays := next[key]; !stays {
			w.unindex(key, old)
		}
	}
	for key, object := range next {
		old, had := last[key]
		w.index(key, old, had, object)
	}
}

func (w *Writer[T]) index(key tarn.Key, old T, had bool, object T) {
	for name, x := range w.store.indexes {
		w.note(place{key, name}, x.put(key, old, had, object))
	}
}

func (w *Writer[T]) unindex(key tarn.Key, old T) {
	for name, x := range w.store.indexes {
		x.remove(key, old)
		w.note(place{key, name}, nil)
	}
}

func (w *Writer[T]) note(at place, err error) {
	if err == nil {
		delete(w.failed, at)
		return
	}
	if w.failed == nil {
		w.failed = map[place]error{}
	}
	w.failed[at] = err
}

// err lists the failures in a fixed order, so that the same writes give the same
// text.
func (w *Writer[T]) err() error {
	if len(w.failed) == 0 {
		return nil
	}
	places := slices.SortedFunc(maps.Keys(w.failed), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
	})
	now := time.Now()
	bad := make(tarn.ObjectErrors, len(places))
	for i, at := range places {
		bad[i] = tarn.BadObject{Key: at.key, Err: &IndexError{Index: at.index, Err: w.failed[at]}, Since: now}
	}
	return bad
}
