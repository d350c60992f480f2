package memory

import (
	"github.com/tarnproject/tarn"
)

// Writer collects the writes of one [Store.Batch]. It must not be used after the
// function that received it returns.
type Writer[T any] struct {
	steps []step[T]
	// version is the last argument of SetVersion, moved whether it was called.
	version tarn.Version
	moved   bool
}

type step[T any] struct {
	key    tarn.Key
	object T
	remove bool
}

// Batch makes all writes of write in one step. If write panics, nothing is written.
// It may read the store, and sees the state before the batch.
//
// The error is a [tarn.ObjectErrors] that names the objects that some index could
// not accept. They are stored nevertheless.
func (s *Store[T]) Batch(write func(w *Writer[T])) error {
	var w Writer[T]
	write(&w)
	return s.write(func(e *edit[T]) tarn.Version {
		for i := range w.steps {
			if step := &w.steps[i]; step.remove {
				e.remove(step.key)
			} else {
				e.put(step.key, step.object)
			}
		}
		if w.moved {
			return s.moveTo(w.version)
		}
		return e.last.version
	})
}

// Put sets the object under key.
func (w *Writer[T]) Put(key tarn.Key, object T) {
	w.steps = append(w.steps, step[T]{key: key, object: object})
}

// Remove removes the object under key, if there is one.
func (w *Writer[T]) Remove(key tarn.Key) {
	w.steps = append(w.steps, step[T]{key: key, remove: true})
}

// SetVersion sets the version of the content after the batch.
func (w *Writer[T]) SetVersion(v tarn.Version) {
	w.version, w.moved = v, true
}

// Put sets the object under key. See [Store.Batch] for the error.
func (s *Store[T]) Put(key tarn.Key, object T) error {
	return s.write(func(e *edit[T]) tarn.Version {
		e.put(key, object)
		return e.last.version
	})
}

// PutAt is Put and SetVersion in one step.
func (s *Store[T]) PutAt(key tarn.Key, object T, v tarn.Version) error {
	return s.write(func(e *edit[T]) tarn.Version {
		e.put(key, object)
		return s.moveTo(v)
	})
}

// Remove removes the object under key, if there is one.
func (s *Store[T]) Remove(key tarn.Key) {
	_ = s.write(func(e *edit[T]) tarn.Version { // removing cannot fail
		e.remove(key)
		return e.last.version
	})
}

// SetVersion changes only the version.
func (s *Store[T]) SetVersion(v tarn.Version) {
	_ = s.write(func(*edit[T]) tarn.Version { return s.moveTo(v) }) // nothing to index
}
