package synctrack

import (
	"sync"
	"sync/atomic"
)

// Lazy is a value that is computed when somebody asks for it and kept until
// something it depends on has changed. Set Evaluate before the first use; the
// rest of the zero value is ready.
//
//   - Get after Notify returns a value whose computation began after it.
//   - For any number of Get between two Notify, Evaluate succeeds at most once;
//     the others wait for it. A failure is returned and not kept.
//   - Notify never waits, and does not disturb a computation that has begun: its
//     result is returned to the callers that wait, and is not kept.
//   - Get of a value that is known takes no lock.
type Lazy[T any] struct {
	// Evaluate computes the value. It may run several times at once, for
	// different notifications.
	Evaluate func() (T, error)

	// current is nil after a notification, until the next Get.
	current atomic.Pointer[round[T]]
}

// round is the time between two notifications. Each has its own lock, so that a
// slow computation of an earlier one holds nobody up.
type round[T any] struct {
	value     atomic.Pointer[T]
	computing sync.Mutex
}

// Notify says that the value may have changed.
func (l *Lazy[T]) Notify() { l.current.Store(nil) }

// Get gives the value, computing it if need be.
func (l *Lazy[T]) Get() (T, error) {
	r := l.round()
	if known := r.value.Load(); known != nil {
		return *known, nil
	}
	r.computing.Lock()
	defer r.computing.Unlock()
	if known := r.value.Load(); known != nil {
		return *known, nil
	}
	value, err := l.Evaluate()
	if err == nil {
		r.value.Store(&value)
	}
	return value, err
}

func (l *Lazy[T]) round() *round[T] {
	for {
		if r := l.current.Load(); r != nil {
			return r
		}
		l.current.CompareAndSwap(nil, &round[T]{})
	}
}
