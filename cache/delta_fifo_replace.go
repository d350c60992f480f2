package cache

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Replace queues every object of the list, and the deletion of every key that is
// pending or known and not in the list. The result is always nil: see [DeltaFIFO]
// about what happens to bad objects.
func (f *DeltaFIFO) Replace(list []any, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := make(map[string]bool, len(list))
	for _, obj := range list {
		key, err := f.KeyOf(obj)
		if err != nil {
			err = KeyError{Obj: obj, Err: err}
		} else {
			listed[key] = true
			err = f.take(key, f.listed, obj)
		}
		if err != nil {
			leftOut(f.logger, key, obj, err)
		}
	}
	for _, key := range f.order {
		if !listed[key] {
			f.deleteMissed(key)
		}
	}
	if f.known != nil {
		for _, key := range f.known.ListKeys() {
			if _, queued := f.pending[key]; !queued && !listed[key] {
				f.deleteMissed(key)
			}
		}
	}
	f.initial.populate(len(f.order))
	return nil
}

// leftOut reports an object that a Replace left out.
func leftOut(logger klog.Logger, key string, obj any, err error) {
	utilruntime.HandleErrorWithLogger(logger, err, "An object of the list was left out; the object stored under its key stays",
		"key", key, "type", fmt.Sprintf("%T", obj))
}

// deleteMissed queues a deletion without an event, with the newest pending state,
// else the known one.
func (f *DeltaFIFO) deleteMissed(key string) {
	var last any
	if newest := f.pending[key].Newest(); newest != nil {
		last = newest.Object
		if gone, ok := last.(DeletedFinalStateUnknown); ok {
			last = gone.Obj
		}
	} else if f.known != nil {
		last = lookUp(f.logger, f.known, key)
	}
	f.push(key, Delta{Type: Deleted, Object: DeletedFinalStateUnknown{Key: key, Obj: last}})
}

// Resync queues every known object as [Sync], except those with a pending change:
// their known state is out of date.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		return nil
	}
	for _, known := range f.known.ListKeys() {
		obj, exists, err := f.known.GetByKey(known)
		if err != nil || !exists {
			f.logger.Error(err, "A key that the store lists cannot be read from it; it is not resynced", "key", known)
			continue
		}
		key, err := f.KeyOf(obj)
		if err != nil {
			utilruntime.HandleErrorWithLogger(f.logger, KeyError{Obj: obj, Err: err}, "A known object is not resynced", "key", known)
			continue
		}
		if _, queued := f.pending[key]; !queued {
			f.push(key, Delta{Type: Sync, Object: obj})
		}
	}
	return nil
}
