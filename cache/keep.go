package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
)

// Front is an informer's store, in memory, as it is given to whoever keeps it, with
// what becomes of objects on their way there.
type Front struct {
	tarn.ReadStore[any]
	// Transformed says that a transform changes them.
	Transformed bool
	// Shared says that parts of them may be the same memory as parts of others, but
	// for labels and annotations. If not, each must be all its own.
	Shared bool
}

// Keep has an informer of this package keep its content beyond the process. When
// the informer starts, keep is given its store and returns the one to write
// instead, which must be [tarn.Durable], such as the same store with a disk behind
// it. It must be called before the informer starts.
//
//   - Readers go on to use the store in memory, in which the content of the process
//     before is there at once; handlers are told of it as of a first list, and then
//     only of what differs.
//   - HasSynced, of the informer and of handlers, is false until the copy has come to
//     where the source was when it was asked.
//   - What strip, which may be nil, takes out of an object is in no store: it returns
//     the object itself or a copy without, and writes into nothing.
//   - If keep fails, the informer goes on without, and the error is told to its watch
//     error handler and in the Health of its replica.
//
// The options WithDisk of packages informers and ctrlcache do this for all
// informers of a factory or cache.
func Keep(informer SharedInformer, keep func(Front) (tarn.ReadStore[any], error), strip func(object any) any) error {
	if isNil(informer) {
		return errors.New("a nil informer has nothing to keep")
	}
	own, ok := informer.GetStore().(*indexer)
	if !ok || own.informer == nil {
		return fmt.Errorf("%T cannot be kept: it is not a shared informer of this package", informer)
	}
	s := own.informer
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("informer has already started")
	}
	s.disk.keep, s.disk.strip = keep, strip
	return tarn.AdaptReplica(adapter.Key{}, s.replica).SetDurable(&s.disk)
}

// disk is what keeps the content of an informer, if something does.
type disk struct {
	keep  func(Front) (tarn.ReadStore[any], error)
	strip func(object any) any
	front Front
	kept  atomic.Pointer[keptStore]
}

// keptStore is what keep made, or why it made nothing.
type keptStore struct {
	tarn.ReadStore[any]
	durable  tarn.Durable
	reporter tarn.DiskReporter
	releaser tarn.Releaser
	err      error
	since    time.Time
}

// Restore asks for the store, now that it is known what becomes of objects, and
// loads what it has.
func (d *disk) Restore(ctx context.Context) (tarn.Kept, error) {
	k := d.open()
	d.kept.Store(k)
	if k.err != nil {
		return tarn.Kept{}, k.err
	}
	return k.durable.Restore(ctx)
}

func (d *disk) open() *keptStore {
	store, err := d.keep(d.front)
	kept := &keptStore{ReadStore: store}
	if err == nil {
		var ok bool
		if kept.durable, ok = tarn.As[tarn.Durable](store); !ok {
			err = fmt.Errorf("a %T cannot bring content back: it is no tarn.Durable", store)
		}
	}
	if err != nil {
		return &keptStore{err: fmt.Errorf("nothing is kept on disk: %w", err), since: time.Now()}
	}
	kept.reporter, _ = tarn.As[tarn.DiskReporter](store)
	kept.releaser, _ = tarn.As[tarn.Releaser](store)
	return kept
}

// Disk is that of the store.
func (d *disk) Disk() tarn.DiskHealth {
	switch k := d.kept.Load(); {
	case k == nil:
		return tarn.DiskHealth{}
	case k.err != nil:
		return tarn.DiskHealth{Err: k.err, ErrSince: k.since}
	case k.reporter == nil:
		return tarn.DiskHealth{}
	default:
		return k.reporter.Disk()
	}
}

// Release lets another informer keep the same.
func (d *disk) Release() {
	if k := d.kept.Load(); k != nil && k.releaser != nil {
		k.releaser.Release()
	}
}

// stripping takes out of objects what is not to be kept, before all else.
func (d *disk) stripping(then TransformFunc) TransformFunc {
	if d.strip == nil {
		return then
	}
	return func(object any) (any, error) {
		if object = d.strip(object); then == nil {
			return object, nil
		}
		return then(object)
	}
}

// writer is where the engine's changes go: to what was kept, which writes the front
// too, or to the front alone.
func (d *disk) writer(front tarn.ReadStore[any]) tarn.ReadStore[any] {
	if k := d.kept.Load(); k != nil && k.err == nil {
		return k.ReadStore
	}
	return front
}

// keepingStore is an informer's store as its replica writes it.
type keepingStore struct{ informerStore }

func (s keepingStore) Apply(changes []tarn.Change[any], at tarn.Position) error {
	return s.informer.disk.writer(s.informerStore).Apply(changes, at)
}
