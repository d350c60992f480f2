package cache

import (
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Replace queues a whole list, in one of the two ways that [RealFIFO] describes.
func (f *RealFIFO) Replace(newItems []any, resourceVersion string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.atomic {
		if err := f.replaceAll(newItems, resourceVersion); err != nil {
			return err
		}
	} else {
		f.replaceEach(newItems)
	}
	f.initial.populate(len(f.items))
	return nil
}

func (f *RealFIFO) replaceAll(newItems []any, resourceVersion string) error {
	objects := newItems
	if f.transform != nil {
		var bad []error
		objects = make([]any, len(newItems))
		for i, obj := range newItems {
			var err error
			if objects[i], err = transformed(f.transform, obj); err != nil {
				key, _ := f.key(obj)
				bad = append(bad, fmt.Errorf("%T %s: %w", obj, key, err))
			}
		}
		if len(bad) > 0 {
			return fmt.Errorf("the list was not taken, %d of its %d objects cannot be transformed: %w", len(bad), len(newItems), errors.Join(bad...))
		}
	}
	f.push(Delta{Type: ReplacedAll, Object: ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: objects}})
	return nil
}

// replaceEach queues the deletions before the list, so that a consumer with room
// for only one of two objects, or one by name, sees the old one go first.
func (f *RealFIFO) replaceEach(newItems []any) {
	listed := make(map[string]bool, len(newItems))
	keyed := make([]Delta, 0, len(newItems))
	for _, obj := range newItems {
		key, err := f.key(obj)
		if err != nil {
			leftOut(f.logger, "", obj, err)
			continue
		}
		listed[key] = true
		keyed = append(keyed, Delta{Type: Replaced, Object: obj})
	}
	queued, last := f.queuedKeys()
	for _, key := range queued {
		if delta := last[key]; !listed[key] && delta.Type != Deleted {
			f.push(missed(key, delta.Object))
		}
	}
	for _, key := range f.known.ListKeys() {
		if _, isQueued := last[key]; !isQueued && !listed[key] {
			f.push(missed(key, lookUp(f.logger, f.known, key)))
		}
	}
	for _, delta := range keyed {
		if err := f.take(delta.Type, delta.Object); err != nil {
			key, _ := f.key(delta.Object)
			leftOut(f.logger, key, delta.Object, err)
		}
	}
}

func missed(key string, last any) Delta {
	return Delta{Type: Deleted, Object: DeletedFinalStateUnknown{Key: key, Obj: last}}
}

// queuedKeys gives the keys in the queue, in order, and the last change of each.
func (f *RealFIFO) queuedKeys() (keys []string, last map[string]Delta) {
	last = make(map[string]Delta, len(f.items))
	for _, delta := range f.items {
		key, err := f.key(delta.Object)
		if err != nil {
			continue // the transform took its key: it cannot be compared
		}
		if _, seen := last[key]; !seen {
			keys = append(keys, key)
		}
		last[key] = delta
	}
	return keys, last
}

// Resync queues every known object as [Sync], except those with a queued change:
// their known state is out of date. If the queue is atomic it queues one [SyncAll].
func (f *RealFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.atomic {
		f.push(Delta{Type: SyncAll, Object: SyncAllInfo{}})
		return nil
	}
	_, queued := f.queuedKeys()
	for _, key := range f.known.ListKeys() {
		if _, isQueued := queued[key]; isQueued {
			continue
		}
		obj, exists, err := f.known.GetByKey(key)
		if err == nil && exists {
			_, err = f.key(obj)
		}
		if err != nil || !exists {
			utilruntime.HandleErrorWithLogger(f.logger, err, "A known object cannot be read or has no key; it is not resynced", "key", key)
			continue
		}
		f.push(Delta{Type: Sync, Object: obj})
	}
	return nil
}
