package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
)

// NewSharedInformer returns an informer without indexes. See
// [NewSharedIndexInformerWithOptions].
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, Indexers{})
}

// NewSharedIndexInformer returns an informer with indexes. See
// [NewSharedIndexInformerWithOptions].
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod,
		Indexers:     indexers,
	})
}

// NewSharedIndexInformerWithOptions returns an informer: a local copy of what lw
// lists and watches, shared by any number of handlers and readers.
//
// Without a resync period there are no resyncs. With one, a handler that asks
// for resyncs gets them at its own period, rounded up to the informer's, which is
// fixed at the start as the shortest then asked for and at least a second.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedInformer(exampleObject, options, func(s *informer) origin {
		if source := clientSourceOf(lw, exampleObject, s.description); source != nil {
			return s.supply(source, usesWatchList(lw))
		}
		src := newSource(lw, exampleObject, s.description)
		src.meter = newReflectorMeter(s.name)
		return origin{src, src.meter, usesWatchList(lw), isFake(lw)}
	})
}

// origin is where an informer's objects come from, and what is known about it.
type origin struct {
	source                 tarn.Source[any]
	meter                  *reflectorMeter
	watchList, unversioned bool
}

// newSharedInformer makes an informer, and its origin when it has a name.
func newSharedInformer(exampleObject runtime.Object, options SharedIndexInformerOptions, from func(*informer) origin) *informer {
	description := options.ObjectDescription
	if description == "" {
		description = describeType(exampleObject)
	}
	s := &informer{
		example:     exampleObject,
		description: description,
		name:        callerName(),
		store: newIndexer(DeletionHandlingMetaNamespaceKeyFunc, options.Indexers,
			[]StoreOption{WithStoreMetrics(options.Identifier, options.InformerMetricsProvider)}),
		resyncs:  resyncs{check: options.ResyncPeriod, standard: options.ResyncPeriod},
		detector: NewCacheMutationDetector(fmt.Sprintf("%T", exampleObject)),
		metrics:  newQueueMetrics(options.Identifier, options.InformerMetricsProvider),
	}
	s.reflector = newShownReflector(s.name, description, s.LastSyncResourceVersion)
	s.replica = s.newReplica(from(s))
	s.store.replica.Store(s.replica)
	s.store.informer = s
	return s
}

// informer is a shared informer: a [tarn.Replica] in client-go's clothes. The
// replica lists, watches, compares, stores and hands out; what is left here is
// the language of handlers, registrations and resync periods.
//
// There is no queue between the reflector and the store, as client-go has one:
// changes go to the store at once and from there to each handler's own backlog,
// which is bounded.
type informer struct {
	example     runtime.Object
	description string
	name        string
	store       *indexer
	replica     *tarn.Replica[any]
	reflector   *shownReflector
	detector    MutationDetector
	metrics     *queueMetrics
	resyncs     resyncs
	source      *source          // of a ListerWatcher, nil if there is none
	supplied    tarn.Source[any] // nil if objects come from a ListerWatcher
	sharing     bool             // by value, in the pool of the process; set before the start
	keep        keep

	mu        sync.Mutex
	started   bool
	transform TransformFunc
	unshared  bool
	handlers  []*registration
}

var _ SharedIndexInformer = (*informer)(nil)

func (s *informer) newReplica(from origin) *tarn.Replica[any] {
	opts := engineOptions(s.description, nil, klog.Background())
	opts.WatchList, opts.Unversioned = from.watchList, from.unversioned
	opts.ShouldResync = s.shouldResync
	reportTo(&opts, s.reflector, nil)
	store := informerStore{ownStore{s.store.memory(), s.store, from.meter.reached}, s}
	s.source, _ = from.source.(*source)
	replica, err := tarn.NewReplica(verifiedSource{from.source, s}, store, opts)
	utilruntime.Must(err)
	return replica
}

// informerStore is the informer's store with what must see each object before
// any handler does.
type informerStore struct {
	ownStore
	informer *informer
}

func (s informerStore) Apply(changes []tarn.Change[any], at tarn.Position) error {
	start := time.Now()
	err := s.ownStore.Apply(changes, at)
	for _, c := range changes {
		if c.Type != tarn.Delete {
			s.informer.detector.AddObject(c.Object)
		}
	}
	s.informer.metrics.processed(time.Since(start).Seconds())
	return err
}

func (s *informer) Run(stopCh <-chan struct{}) {
	s.RunWithContext(wait.ContextForChannel(stopCh))
}

func (s *informer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !s.start() {
		klog.FromContext(ctx).Info("Warning: the shared informer has been started before; it runs only once", "type", s.description)
		return
	}
	stop, stopDetector := context.WithCancel(context.WithoutCancel(ctx))
	var detecting sync.WaitGroup
	detecting.Go(func() { s.detector.Run(stop.Done()) })
	defer detecting.Wait()
	defer stopDetector()
	_ = s.replica.Run(ctx) // returns why ctx ended
}

// start fixes the resync period and what is done to objects, and lets the informer
// run, once.
func (s *informer) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return false
	}
	s.started = true
	err := tarn.AdaptReplica(adapter.Key{}, s.replica).Configure(func(o *tarn.Options[any]) {
		o.ResyncPeriod, o.Transform = s.resyncs.check, s.keep.stripping(s.making())
		o.Sinks = s.keep.sinks()
	})
	return err == nil
}

// configure changes the replica before the start.
func (s *informer) configure(change func(*tarn.Options[any])) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("informer has already started")
	}
	return tarn.AdaptReplica(adapter.Key{}, s.replica).Configure(change)
}

func (s *informer) SetTransform(transform TransformFunc) error {
	return s.configure(func(*tarn.Options[any]) { s.transform = transform })
}

func (s *informer) SetWatchErrorHandler(handler WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(withoutContext(handler))
}

// withoutContext lets a handler of the older kind be used where one of the newer
// kind is expected.
func withoutContext(handler WatchErrorHandler) WatchErrorHandlerWithContext {
	if handler == nil {
		return nil
	}
	return func(_ context.Context, r *Reflector, err error) { handler(r, err) }
}

func (s *informer) SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error {
	return s.configure(func(o *tarn.Options[any]) { reportTo(o, s.reflector, handler) })
}

func (s *informer) GetStore() Store     { return s.store }
func (s *informer) GetIndexer() Indexer { return s.store }

func (s *informer) AddIndexers(indexers Indexers) error {
	if s.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.store.AddIndexers(indexers)
}

func (s *informer) HasSynced() bool { return hasSynced(s.replica.Synced()) }

// hasSynced says whether done is closed.
func hasSynced(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (s *informer) HasSyncedChecker() DoneChecker {
	return namedDone{fmt.Sprintf("SharedIndexInformer %T", s.example), s.replica.Synced()}
}

// namedDone is a channel with a name.
type namedDone struct {
	name string
	done <-chan struct{}
}

func (c namedDone) Name() string          { return c.name }
func (c namedDone) Done() <-chan struct{} { return c.done }

func (s *informer) LastSyncResourceVersion() string {
	_, version := tarn.AdaptReplica(adapter.Key{}, s.replica).Status()
	return string(version)
}

// IsStopped says that nothing more is listed or watched; handlers may still be
// busy with what came before.
func (s *informer) IsStopped() bool {
	state, _ := tarn.AdaptReplica(adapter.Key{}, s.replica).Status()
	return state == tarn.StateStopped
}

func (s *informer) GetController() Controller { return informerController{s} }

// informerController is the informer's controller as far as others may use it:
// the informer alone decides when it runs.
type informerController struct{ informer *informer }

func (informerController) Run(<-chan struct{})             {}
func (informerController) RunWithContext(context.Context)  {}
func (c informerController) HasSynced() bool               { return c.informer.HasSynced() }
func (c informerController) HasSyncedChecker() DoneChecker { return c.informer.HasSyncedChecker() }
func (c informerController) LastSyncResourceVersion() string {
	return c.informer.LastSyncResourceVersion()
}
