package cache

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tarnproject/tarn"
)

// foreignStore lets the engine write a store that is not ours, by exactly the
// calls that client-go would make: Replace for a whole state, Add, Update or
// Delete for an event, Bookmark and UpdateResourceVersion where the store has
// them. It cannot be asked what it holds, so nothing is compared and nothing
// left out.
type foreignStore struct {
	store ReflectorStore
}

var (
	_ tarn.Store[any] = foreignStore{}
	_ tarn.Resyncer   = foreignStore{}
)

func (f foreignStore) Replace(items []tarn.Item[any], at tarn.Position) error {
	list := make([]any, len(items))
	for i := range items {
		list[i] = items[i].Object
	}
	return f.store.Replace(list, string(at.Version))
}

func (f foreignStore) Apply(changes []tarn.Change[any], at tarn.Position) error {
	versioned, _ := f.store.(ResourceVersionUpdater)
	reached := func(v tarn.Version) {
		if versioned != nil && v != "" {
			versioned.UpdateResourceVersion(string(v))
		}
	}
	var refused tarn.ObjectErrors
	for _, c := range changes {
		if err := f.write(c); err != nil {
			refused = append(refused, tarn.BadObject{Key: c.Key, Err: err})
		}
		if v := at.Version; v != tarn.Latest && v != tarn.Any {
			reached(c.Version)
		}
	}
	if len(changes) == 0 {
		if b, ok := f.store.(ReflectorBookmarkStore); ok {
			if err := b.Bookmark(string(at.Version)); err != nil {
				utilruntime.HandleError(fmt.Errorf("the store did not take the bookmark at %s, which only tells how fresh it is: %w", at.Version, err))
			}
		}
		reached(at.Version)
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

func (f foreignStore) write(c tarn.Change[any]) error {
	if c.Object == nil {
		return nil // the delete of an object that is not of the expected type: client-go ignores it
	}
	switch c.Type {
	case tarn.Add:
		return f.store.Add(c.Object)
	case tarn.Update:
		return f.store.Update(c.Object)
	default:
		return f.store.Delete(c.Object)
	}
}

func (f foreignStore) Resync() error { return f.store.Resync() }
