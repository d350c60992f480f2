package cache

import (
	"sync"

	"github.com/tarnproject/tarn"
)

// removed holds the objects that a program removed from the store of an informer by
// itself. Handlers have seen them and still have to be notified when the server
// deletes them. client-go needs no such record because it notifies handlers of every
// delete, also of one that it repeats.
//
// An object stays until the server changes or deletes it, so the record has no more
// objects than the program removed.
type removed struct {
	mu      sync.Mutex
	objects map[tarn.Key]any
}

func (r *removed) put(key tarn.Key, object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects == nil {
		r.objects = map[tarn.Key]any{}
	}
	r.objects[key] = object
}

// TakeRemoved is what the engine asks when the server deletes an object that the store
// does not have.
func (r *removed) TakeRemoved(key tarn.Key) (object any, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	object, ok = r.objects[key]
	delete(r.objects, key)
	return object, ok
}

// forget drops the objects of these keys, which the store has again.
func (r *removed) forget(keys []tarn.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		delete(r.objects, key)
	}
}

// forgetWritten drops the objects that the engine has written again.
func (r *removed) forgetWritten(changes []tarn.Change[any]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.objects) == 0 {
		return
	}
	for i := range changes {
		delete(r.objects, changes[i].Key)
	}
}
