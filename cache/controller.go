package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn"
)

// New returns a controller that reflects a ListerWatcher into a queue and
// processes what comes out of it.
func New(c *Config) Controller { return &queueController{config: *c} }

// queueController fills a queue of the user's choice from our engine and empties it
// through the user's function. Informers of this package have no queue; it is for
// code with a queue of its own.
type queueController struct {
	config  Config
	version atomic.Value // string
}

func (c *queueController) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

func (c *queueController) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	engine, err := c.newEngine(klog.FromContext(ctx))
	if err != nil {
		cancel()
		utilruntime.HandleErrorWithContext(ctx, err, "The controller cannot run")
		return
	}
	reflecting := make(chan struct{})
	go func() {
		defer close(reflecting)
		_ = engine.Run(ctx) // returns why ctx ended
	}()
	closing := context.AfterFunc(ctx, c.config.Queue.Close)
	defer func() {
		cancel()
		if closing() {
			c.config.Queue.Close()
		}
		<-reflecting
	}()
	c.process(ctx)
}

func (c *queueController) newEngine(logger klog.Logger) (*tarn.Reflector[any], error) {
	name, description := callerName(), c.config.ObjectDescription
	if description == "" {
		description = describeType(c.config.ObjectType)
	}
	src := newSource(c.config.ListerWatcher, c.config.ObjectType, description)
	src.meter = newReflectorMeter(name)
	opts := engineOptions(description, nil, logger)
	opts.WatchList, opts.Unversioned = usesWatchList(c.config.ListerWatcher), isFake(c.config.ListerWatcher)
	opts.MinWatchTimeout = c.config.MinWatchTimeout
	opts.ResyncPeriod = c.config.FullResyncPeriod
	opts.ShouldResync = c.config.ShouldResync
	opts.PageSize = func() int64 { return c.config.WatchListPageSize }
	handler := withoutContext(c.config.WatchErrorHandler)
	if handler == nil {
		handler = c.config.WatchErrorHandlerWithContext
	}
	reportTo(&opts, newShownReflector(name, description, c.LastSyncResourceVersion), handler)
	return newEngine(src, c.config.Queue, opts, func(v tarn.Version) { c.version.Store(string(v)) })
}

// process empties the queue until it is closed. What the user's function returns
// is its own affair, as with client-go: the queue has let the item go.
func (c *queueController) process(ctx context.Context) {
	pop := func() error {
		_, err := c.config.Queue.Pop(PopProcessFunc(c.config.Process))
		return err
	}
	if queue, ok := c.config.Queue.(QueueWithBatch); ok && c.config.ProcessBatch != nil &&
		clientfeatures.FeatureGates().Enabled(clientfeatures.InOrderInformersBatchProcess) {
		pop = func() error { return queue.PopBatch(c.config.ProcessBatch, PopProcessFunc(c.config.Process)) }
	}
	var guard crashGuard
	for ctx.Err() == nil {
		guard.call(klog.FromContext(ctx), func() {
			if err := pop(); errors.Is(err, ErrFIFOClosed) {
				// A queue that somebody else closed stays closed; wait for the end.
				<-ctx.Done()
			}
		})
	}
}

func (c *queueController) HasSynced() bool {
	return hasSynced(c.config.Queue.HasSyncedChecker().Done())
}

func (c *queueController) HasSyncedChecker() DoneChecker { return c.config.Queue.HasSyncedChecker() }

func (c *queueController) LastSyncResourceVersion() string {
	v, _ := c.version.Load().(string)
	return v
}

// NewInformerWithOptions returns a store and a controller that fills it and calls a
// handler for each change. Only read the store: a write to it reaches no handler
// and may be overwritten.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	store, controller := newHandlerController(options)
	return store, controller
}

// NewInformer returns a store and a controller that fills it and notifies h of each change.
//
// Deprecated: Use [NewInformerWithOptions] instead.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	store, controller := newHandlerController(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h})
	return store, controller
}

// NewIndexerInformer is [NewInformer] with indexes.
//
// Deprecated: Use [NewInformerWithOptions] instead.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, controller := newHandlerController(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers})
	return store, controller
}

// NewTransformingInformer is [NewInformer] with a transform.
//
// Deprecated: Use [NewInformerWithOptions] instead.
func NewTransformingInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, transformer TransformFunc) (Store, Controller) {
	store, controller := newHandlerController(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Transform: transformer})
	return store, controller
}

// NewTransformingIndexerInformer is [NewInformer] with indexes and a transform.
//
// Deprecated: Use [NewInformerWithOptions] instead.
func NewTransformingIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers, transformer TransformFunc) (Indexer, Controller) {
	store, controller := newHandlerController(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers, Transform: transformer})
	return store, controller
}
