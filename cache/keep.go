package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
)

// ObjectTraits say what happens to an informer's objects on their way to its store.
type ObjectTraits struct {
	// Transformed says that a transform changes them; it is Transform.
	Transformed bool
	Transform   TransformFunc
	// Shared says that parts of them, except for labels and annotations, may be the same
	// memory as parts of others. If not, each object must have its own.
	Shared bool
}

// Keep makes an informer of this package keep its content beyond the process. open is
// called when the informer starts, and returns the sink to write to, such as a disk. Keep
// must be called before the informer starts.
//
//   - If the sink is a [tarn.Restorer], the content of the previous process is in the
//     informer's store at once. Handlers receive it like a first list, and then only what
//     differs.
//   - HasSynced, of the informer and of handlers, is false until the copy has reached
//     the version that the source had when it was asked.
//   - strip, which may be nil, takes parts out of an object, so that they are neither in
//     the store nor in the sink. It returns the object itself or a copy without them, and
//     changes nothing in place.
//   - If open fails, the informer runs without the sink. The error is passed to its watch
//     error handler, and is in the Health of its replica.
//
// The options WithDisk of packages informers and ctrlcache do this for all
// informers of a factory or cache.
func Keep(informer SharedInformer, open func(ObjectTraits) (tarn.Sink[any], error), strip func(object any) any) error {
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
	s.keep.open, s.keep.strip = open, strip
	return tarn.AdaptReplica(adapter.Key{}, s.replica).Configure(func(o *tarn.Options[any]) {
		o.Sinks = []tarn.Sink[any]{closedSink{}} // Health says that there is one
	})
}

// keep is how the content of an informer is kept, if it is.
type keep struct {
	open   func(ObjectTraits) (tarn.Sink[any], error)
	strip  func(object any) any
	traits ObjectTraits
}

// sinks opens the sink, now that it is known what happens to objects.
func (k *keep) sinks() []tarn.Sink[any] {
	if k.open == nil {
		return nil
	}
	sink, err := k.open(k.traits)
	if err == nil && sink == nil {
		err = errors.New("there is no sink")
	}
	if err != nil {
		sink = closedSink{fmt.Errorf("nothing is kept on disk: %w", err), time.Now()}
	}
	return []tarn.Sink[any]{sink}
}

// stripping takes out of objects what is not to be kept, before all else.
func (k *keep) stripping(then TransformFunc) TransformFunc {
	if k.strip == nil {
		return then
	}
	return func(object any) (any, error) {
		if object = k.strip(object); then == nil {
			return object, nil
		}
		return then(object)
	}
}

// closedSink stands for a sink that is not open: the informer has not started, or the
// sink could not be opened. It takes everything and keeps nothing, so that nothing waits
// for it in memory, and Health has the error.
type closedSink struct {
	err   error
	since time.Time
}

var _ tarn.Restorer[any] = closedSink{}

func (f closedSink) Policy() tarn.SinkPolicy[any] { return tarn.SinkPolicy[any]{Name: "disk"} }

func (f closedSink) Open(context.Context, func() error) (tarn.Kept, error) {
	return tarn.Kept{}, f.err
}
func (f closedSink) Load(context.Context) ([]tarn.Change[any], error) { return nil, f.err }
func (f closedSink) Commit(context.Context, tarn.Batch[any]) error    { return nil }
func (f closedSink) Close()                                           {}
func (f closedSink) Disk() tarn.SinkHealth {
	return tarn.SinkHealth{Err: f.err, ErrSince: f.since}
}
