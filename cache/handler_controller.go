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
// is run inline.
type handlerController struct {
	store        *indexer
	replica      *tarn.Replica[any]
	subscription *tarn.Subscription[any]
	description  string
}

func newHandlerController(options InformerOptions) (*indexer, *handlerController) {
	description := describeType(options.ObjectType)
	name := callerName()
	c := &handlerController{
		description: description,
		store: newIndexer(DeletionHandlingMetaNamespaceKeyFunc, options.Indexers,
			[]StoreOption{WithStoreMetrics(options.Identifier, options.InformerMetricsProvider)}),
	}
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	src := newSource(options.ListerWatcher, options.ObjectType, description)
	src.meter = newReflectorMeter(name)
	reflector := newIdleReflector(name, description)
	opts := engineOptions(description, nil, logger)
	opts.WatchList, opts.Unversioned = usesWatchList(options.ListerWatcher), isFake(options.ListerWatcher)
	opts.MinWatchTimeout = options.MinWatchTimeout
	opts.ResyncPeriod = max(options.ResyncPeriod, 0)
	opts.Transform = sharing(options.Transform, c.store, ourSharer(), src)
	reportTo(&opts, reflector, nil)
	var err error
	c.replica, err = tarn.NewReplica(src, ownStore{c.store.memory(), c.store, src.meter.reached}, opts)
	utilruntime.Must(err)
	c.store.replica = c.replica

	handler := options.Handler
	if isNil(handler) {
		handler = ResourceEventHandlerFuncs{}
	}
	var guard crashGuard
	c.subscription, err = c.replica.Subscribe(
		func(change tarn.Change[any]) { guard.call(logger, func() { handle(handler, change) }) },
		tarn.SubscribeOptions{Name: handlerName(handler), Inline: true, Syncs: func() bool { return true }})
	utilruntime.Must(err)
	return c.store, c
}

func (c *handlerController) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

func (c *handlerController) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var reflecting sync.WaitGroup
	reflecting.Go(func() { _ = c.replica.Run(ctx) }) // returns why ctx ended
	defer reflecting.Wait()
	defer cancel()
	c.subscription.Run(ctx)
}

func (c *handlerController) HasSynced() bool { return hasSynced(c.subscription.Synced()) }

func (c *handlerController) HasSyncedChecker() DoneChecker {
	return namedDone{fmt.Sprintf("Controller %s", c.description), c.subscription.Synced()}
}

func (c *handlerController) LastSyncResourceVersion() string {
	_, version := tarn.AdaptReplica(adapter.Key{}, c.replica).Status()
	return string(version)
}
