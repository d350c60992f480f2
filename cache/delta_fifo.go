package cache

import (
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// DeltaFIFO is a queue of keys, each with everything that happened to its object
// since it was last popped.
//
// It stands between a reflector, which adds, updates, deletes and replaces, and a
// consumer that pops and keeps a store of its own. That store, if given as the
// known objects, is what Replace and Resync compare with: an object that the
// consumer has and a new list has not is queued as deleted.
//
//   - A key is queued once, in the order of its first pending change.
//   - Two deletions in a row are one, the one that knows the final state.
//   - The transform is called once for each object that comes in, never for objects
//     that come from the known objects.
//   - Replace takes what it can: an object that has no key, or that the transform
//     fails or panics on, is reported and left out, and what the consumer knows
//     under its key stays. client-go gives up the whole list instead, and then one
//     bad object keeps an informer from ever syncing.
//
// The consumer is called under the queue's lock. That is part of the contract:
// the comparison with the known objects must not see a state between the pop and
// the consumer's own write.
type DeltaFIFO struct {
	name      string
	logger    klog.Logger
	keyFunc   KeyFunc
	known     KeyListerGetter // may be nil
	transform TransformFunc   // may be nil
	listed    DeltaType       // what an object in a Replace is queued as

	mu      sync.Mutex
	changed sync.Cond
	closed  bool
	initial initialSync
	// order holds each key of pending once.
	order   []string
	pending map[string]Deltas
}

var (
	_ Queue             = &DeltaFIFO{}
	_ TransformingStore = &DeltaFIFO{}
	_ DoneChecker       = &DeltaFIFO{}
)

// NewDeltaFIFO returns a queue that reports relisted objects as [Sync]. Prefer
// [NewDeltaFIFOWithOptions] with EmitDeltaTypeReplaced, which distinguishes a
// relist from a resync.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects})
}

// NewDeltaFIFOWithOptions gives a queue. All options may be left out.
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{
		name:      opts.Name,
		keyFunc:   opts.KeyFunction,
		known:     opts.KnownObjects,
		transform: opts.Transformer,
		listed:    Sync,
		initial:   newInitialSync(),
		pending:   map[string]Deltas{},
	}
	f.changed.L = &f.mu
	if f.name == "" {
		f.name = "DeltaFIFO"
	}
	if f.keyFunc == nil {
		f.keyFunc = MetaNamespaceKeyFunc
	}
	if opts.EmitDeltaTypeReplaced {
		f.listed = Replaced
	}
	f.logger = queueLogger(opts.Logger, f.name)
	return f
}

func queueLogger(given *klog.Logger, name string) klog.Logger {
	if given == nil {
		return klog.LoggerWithName(klog.Background(), name)
	}
	return klog.LoggerWithName(*given, name)
}

// Name implements [DoneChecker].
func (f *DeltaFIFO) Name() string { return f.name }

// Done is closed when [DeltaFIFO.HasSynced] becomes true.
func (f *DeltaFIFO) Done() <-chan struct{} { return f.initial.done }

// HasSynced says whether the keys of the first Replace have all been popped and
// processed. It is true at once if the queue began with another change.
func (f *DeltaFIFO) HasSynced() bool { return f.initial.synced() }

// HasSyncedChecker is [DeltaFIFO.HasSynced] to wait for.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

// Transformer gives the transform that the queue was made with.
func (f *DeltaFIFO) Transformer() TransformFunc { return f.transform }

// KeyOf gives the key of an object, of the deltas about one, or of the marker of
// a missed deletion.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) { return queueKey(f.keyFunc, obj) }

// Close ends every Pop once the queue is empty.
func (f *DeltaFIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.changed.Broadcast()
}

// IsClosed says whether Close was called.
func (f *DeltaFIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Add queues an object as new.
func (f *DeltaFIFO) Add(obj any) error { return f.enqueue(Added, obj) }

// Update queues an object as changed.
func (f *DeltaFIFO) Update(obj any) error { return f.enqueue(Updated, obj) }

func (f *DeltaFIFO) enqueue(what DeltaType, obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.populate(0)
	key, err := f.KeyOf(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	return f.take(key, what, obj)
}

// Delete queues an object as deleted, if it is pending or known: any other deletion
// was found by a relist and queued before.
//
// A final state that cannot be transformed is still a deletion. It is queued as one
// whose final state is unknown, with the known state.
func (f *DeltaFIFO) Delete(obj any) error {
	key, err := f.KeyOf(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.populate(0)
	if _, queued := f.pending[key]; !queued && !f.knows(key) {
		return nil
	}
	if err := f.take(key, Deleted, obj); err != nil {
		utilruntime.HandleErrorWithLogger(f.logger, err, "The final state of a deleted object could not be transformed; its deletion is delivered with the last known state", "key", key)
		f.deleteMissed(key)
	}
	return nil
}

// knows returns true in doubt: an error of the store must not lose a deletion.
func (f *DeltaFIFO) knows(key string) bool {
	if f.known == nil {
		return false
	}
	_, exists, err := f.known.GetByKey(key)
	return exists || err != nil
}

// take queues an object that came from outside.
func (f *DeltaFIFO) take(key string, what DeltaType, obj any) error {
	if !isTombstone(obj) {
		var err error
		if obj, err = transformed(f.transform, obj); err != nil {
			return err
		}
	}
	f.push(key, Delta{Type: what, Object: obj})
	return nil
}

func (f *DeltaFIFO) push(key string, delta Delta) {
	deltas, queued := f.pending[key]
	if !queued {
		f.order = append(f.order, key)
	}
	if n := len(deltas); n > 0 && delta.Type == Deleted && deltas[n-1].Type == Deleted {
		if isTombstone(deltas[n-1].Object) {
			deltas[n-1] = delta
		}
	} else {
		deltas = append(deltas, delta)
	}
	f.pending[key] = deltas
	f.changed.Broadcast()
}

// Pop waits for a key and gives its [Deltas] to process, under the queue's lock,
// and to the caller. It fails with [ErrFIFOClosed] when the queue is closed and
// empty, else with what process returned; the deltas are gone from the queue
// either way.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.order) == 0 {
		if f.closed {
			return nil, ErrFIFOClosed
		}
		f.changed.Wait()
	}
	key := f.order[0]
	f.order = f.order[1:]
	deltas := f.pending[key]
	delete(f.pending, key)

	isInInitialList := !f.initial.synced()
	defer f.initial.processed(f.initial.share(1))
	defer warnIfSlow(f.logger, time.Now(), f.keyFunc, deltas, len(f.order))
	return deltas, process(deltas, isInInitialList)
}
