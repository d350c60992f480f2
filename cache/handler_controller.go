package cache

import (
	"context"
	"fmt"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
)

// handlerController is an informer with one handler, which is called by the
// goroutine that runs the controller: so a panic of the handler, unless
// utilruntime is configured to continue, reaches the caller of Run.
//
// It is the same replica as behind a shared informer, with one subscription that
// is run inline. A controller that has been stopped can be run again, as programs do
// that lose and regain a lock: each run has a replica of its own over the same store.
type handlerController struct {
	options           InformerOptions
	name, description string
	store             *indexer
	// synced is closed when the handler has received the first state, in any run.
	synced     chan struct{}
	onceSynced sync.Once

	mu                sync.Mutex
	replica           *tarn.Replica[any]
	subscription      *tarn.Subscription[any]
	running, finished bool
}

func newHandlerController(options InformerOptions) (*indexer, *handlerController) {
	c := &handlerController{
		options: options, name: callerName(), description: describeType(options.ObjectType),
		store: newIndexer(DeletionHandlingMetaNamespaceKeyFunc, options.Indexers,
			[]StoreOption{WithStoreMetrics(options.Identifier, options.InformerMetricsProvider)}),
		synced: make(chan struct{}),
	}
	c.connect()
	return c.store, c
}

// connect makes the replica of the next run. Its errors are mistakes of this package.
func (c *handlerController) connect() {
	options := c.options
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	from, transform := c.origin()
	opts := engineOptions(c.description, nil, logger)
	opts.WatchList, opts.Unversioned = from.watchList, from.unversioned
	opts.Transform = transform
	opts.MinWatchTimeout = options.MinWatchTimeout
	opts.ResyncPeriod = max(options.ResyncPeriod, 0)
	reportTo(&opts, newShownReflector(c.name, c.description, c.LastSyncResourceVersion), nil)
	var err error
	c.replica, err = tarn.NewReplica(from.source, ownStore{c.store.memory(), c.store, from.meter.reached}, opts)
	utilruntime.Must(err)
	c.store.replica.Store(c.replica)

	handler := options.Handler
	if isNil(handler) {
		handler = ResourceEventHandlerFuncs{}
	}
	var guard crashGuard
	again := c.HasSynced()
	deliver := func(change tarn.Change[any]) {
		change.Initial = change.Initial && !again
		guard.call(logger, func() { handle(handler, change) })
	}
	c.subscription, err = c.replica.Subscribe(deliver,
		tarn.SubscribeOptions{Name: handlerName(handler), Inline: true, Syncs: func() bool { return true }})
	utilruntime.Must(err)
}

// origin is where the objects come from, and what is done to each of them.
func (c *handlerController) origin() (origin, TransformFunc) {
	lw, example, transform := c.options.ListerWatcher, c.options.ObjectType, c.options.Transform
	from := origin{meter: newReflectorMeter(c.name), watchList: usesWatchList(lw), unversioned: isFake(lw)}
	if source := clientSourceOf(lw, example, c.description); source != nil {
		from.source, from.unversioned = supplied(source, example, from.meter), false
		source.ShareParts(transform == nil)
		if transform == nil {
			return from, nil
		}
		return from, sharing(transform, c.store, ourSharer(), nil)
	}
	src := newSource(lw, example, c.description)
	src.meter = from.meter
	from.source = src
	return from, sharing(transform, c.store, ourSharer(), src)
}

func (c *handlerController) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

func (c *handlerController) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	replica, subscription := c.begin()
	if replica == nil {
		klog.FromContext(ctx).Info("Warning: the controller is running already", "type", c.description)
		return
	}
	defer c.end()
	ctx, cancel := context.WithCancel(ctx)
	var reflecting sync.WaitGroup
	reflecting.Go(func() { _ = replica.Run(ctx) }) // returns why ctx ended
	reflecting.Go(func() { c.awaitSync(ctx, subscription) })
	defer reflecting.Wait()
	defer cancel()
	subscription.Run(ctx)
}

// begin returns what to run, nil if it runs already.
func (c *handlerController) begin() (*tarn.Replica[any], *tarn.Subscription[any]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return nil, nil
	}
	if c.finished {
		c.connect()
	}
	c.running, c.finished = true, false
	return c.replica, c.subscription
}

func (c *handlerController) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.finished = false, true
}

func (c *handlerController) awaitSync(ctx context.Context, subscription *tarn.Subscription[any]) {
	select {
	case <-subscription.Synced():
	case <-ctx.Done():
	}
	if hasSynced(subscription.Synced()) {
		c.onceSynced.Do(func() { close(c.synced) })
	}
}

func (c *handlerController) HasSynced() bool { return hasSynced(c.synced) }

func (c *handlerController) HasSyncedChecker() DoneChecker {
	return namedDone{fmt.Sprintf("Controller %s", c.description), c.synced}
}

func (c *handlerController) LastSyncResourceVersion() string {
	c.mu.Lock()
	replica := c.replica
	c.mu.Unlock()
	_, version := tarn.AdaptReplica(adapter.Key{}, replica).Status()
	return string(version)
}
