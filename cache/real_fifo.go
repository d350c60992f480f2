package cache

import (
	"errors"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// RealFIFO is a queue of changes in the order in which they came: unlike in a
// [DeltaFIFO], a change to one object never overtakes a change to another.
//
// It knows two ways to pass a whole list or a resync on:
//
//   - By objects: Replace queues a deletion for each object that the consumer
//     knows and the list lacks, then each object of the list; Resync queues each
//     known object. The consumer's store is given as the known objects, and the
//     consumer is called under the queue's lock, so that the comparison never
//     sees a half-written state. An object of the list that is bad is reported
//     and left out, and what the consumer knows of it stays.
//   - Atomically: Replace and Resync are one entry each, and the consumer works out
//     what they mean. The queue then needs no look at the consumer's store and can
//     take new changes while the consumer works. It cannot leave a bad object out,
//     though: the consumer would treat that as a deletion. So the Replace fails as
//     a whole and names every bad object.
type RealFIFO struct {
	name          string
	logger        klog.Logger
	keyFunc       KeyFunc
	transform     TransformFunc   // may be nil
	known         KeyListerGetter // nil if atomic
	atomic        bool
	bookmarks     bool
	freeInProcess bool // the lock is released while the consumer works
	metrics       *queueMetrics

	mu      sync.Mutex
	changed sync.Cond
	closed  bool
	initial initialSync
	items   []Delta
}

var (
	_ QueueWithBatch    = &RealFIFO{}
	_ TransformingStore = &RealFIFO{}
	_ DoneChecker       = &RealFIFO{}
)

// NewRealFIFO gives a queue that passes lists on by objects. knownObjects is
// required.
func NewRealFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter, transformer TransformFunc) *RealFIFO {
	return NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects, Transformer: transformer})
}

// NewRealFIFOWithOptions gives a queue. It panics on options that contradict each
// other, as client-go's does, because it has no result for an error.
func NewRealFIFOWithOptions(opts RealFIFOOptions) *RealFIFO {
	if err := checkRealFIFOOptions(opts); err != nil {
		panic(err)
	}
	f := &RealFIFO{
		name:          opts.Identifier.Name(),
		keyFunc:       opts.KeyFunction,
		transform:     opts.Transformer,
		known:         opts.KnownObjects,
		atomic:        opts.AtomicEvents,
		bookmarks:     opts.EmitDeltaTypeBookmark,
		freeInProcess: opts.UnlockWhileProcessing,
		metrics:       newQueueMetrics(opts.Identifier, opts.MetricsProvider),
		initial:       newInitialSync(),
	}
	f.changed.L = &f.mu
	if f.name == "" {
		f.name = opts.Name
	}
	if f.name == "" {
		f.name = "RealFIFO"
	}
	if f.keyFunc == nil {
		f.keyFunc = MetaNamespaceKeyFunc
	}
	f.logger = queueLogger(opts.Logger, f.name)
	if gvr := opts.Identifier.GroupVersionResource(); !gvr.Empty() {
		f.logger = klog.LoggerWithValues(f.logger, "resource", gvr)
	}
	return f
}

func checkRealFIFOOptions(opts RealFIFOOptions) error {
	switch {
	case opts.AtomicEvents && opts.KnownObjects != nil:
		return errors.New("RealFIFOOptions: with AtomicEvents the consumer compares, leave KnownObjects out")
	case !opts.AtomicEvents && opts.KnownObjects == nil:
		return errors.New("RealFIFOOptions: without AtomicEvents the queue compares, KnownObjects is required")
	case !opts.AtomicEvents && opts.UnlockWhileProcessing:
		return errors.New("RealFIFOOptions: UnlockWhileProcessing needs AtomicEvents")
	case !opts.AtomicEvents && opts.EmitDeltaTypeBookmark:
		return errors.New("RealFIFOOptions: EmitDeltaTypeBookmark needs AtomicEvents")
	}
	return nil
}

// Name implements [DoneChecker].
func (f *RealFIFO) Name() string { return f.name }

// Done is closed when [RealFIFO.HasSynced] becomes true.
func (f *RealFIFO) Done() <-chan struct{} { return f.initial.done }

// HasSynced says whether what the first Replace queued has all been processed. It
// is true at once if the queue began with another change.
func (f *RealFIFO) HasSynced() bool { return f.initial.synced() }

// HasSyncedChecker is [RealFIFO.HasSynced] to wait for.
func (f *RealFIFO) HasSyncedChecker() DoneChecker { return f }

// Transformer gives the transform that the queue was made with.
func (f *RealFIFO) Transformer() TransformFunc { return f.transform }

// Close ends every Pop once the queue is empty.
func (f *RealFIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.changed.Broadcast()
}

// IsClosed says whether Close was called.
func (f *RealFIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Add queues an object as new.
func (f *RealFIFO) Add(obj any) error { return f.enqueue(Added, obj) }

// Update queues an object as changed.
func (f *RealFIFO) Update(obj any) error { return f.enqueue(Updated, obj) }

// Delete queues an object as gone. As in [DeltaFIFO.Delete], a transform that
// fails does not lose the deletion.
func (f *RealFIFO) Delete(obj any) error { return f.enqueue(Deleted, obj) }

func (f *RealFIFO) enqueue(what DeltaType, obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.populate(0)
	key, err := f.key(obj)
	if err != nil {
		return err
	}
	err = f.take(what, obj)
	if err != nil && what == Deleted {
		utilruntime.HandleErrorWithLogger(f.logger, err, "The final state of a deleted object could not be transformed; its deletion is delivered without it", "key", key)
		f.push(Delta{Type: Deleted, Object: DeletedFinalStateUnknown{Key: key}})
		return nil
	}
	return err
}

func (f *RealFIFO) key(obj any) (string, error) {
	key, err := queueKey(f.keyFunc, obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// take queues an object that came from outside.
func (f *RealFIFO) take(what DeltaType, obj any) error {
	if !isTombstone(obj) {
		var err error
		if obj, err = transformed(f.transform, obj); err != nil {
			return err
		}
	}
	f.push(Delta{Type: what, Object: obj})
	return nil
}

func (f *RealFIFO) push(delta Delta) {
	f.items = append(f.items, delta)
	f.metrics.queued(len(f.items))
	f.changed.Broadcast()
}

// Bookmark queues a resource version that the consumer has seen everything up
// to, if the queue was made to.
func (f *RealFIFO) Bookmark(resourceVersion string) error {
	if f.bookmarks {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.push(Delta{Type: Bookmark, Object: BookmarkInfo{ResourceVersion: resourceVersion}})
	}
	return nil
}
