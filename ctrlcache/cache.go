package ctrlcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	tarncache "github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/kube"
)

// NewCache is a [cache.NewCacheFunc] for ctrl.Options.NewCache and
// cluster.Options.NewCache, with every option of controller-runtime's own.
//
// The first result is also a manager.LeaderElectionRunnable that needs no leader,
// and what [NewClient] needs to let reads wait for writes.
func NewCache(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
	return newCache(cfg, opts, Settings{})
}

var _ cache.NewCacheFunc = NewCache

// WithDisk is [NewCache] with informers that keep their content on disk: see package
// ondisk for keep. The next process begins with that content, and follows the server from
// there without a list; reads wait, as usual, until the informer has synced. It does not
// affect informers that cache.Options.NewInformer makes.
func WithDisk(keep kube.Keeper) cache.NewCacheFunc { return With(Settings{Keep: keep}) }

// WithShard is [NewCache] with informers that have shard i of n only: see [kube.Shard].
// To confine some kinds and not others, use [With].
func WithShard(i, n int) cache.NewCacheFunc {
	sharding, err := kube.FixedShard(i, n)
	if err != nil {
		return func(*rest.Config, cache.Options) (cache.Cache, error) { return nil, err }
	}
	return With(Settings{Sharding: sharding})
}

// Settings are those of a cache that controller-runtime's options do not have.
type Settings struct {
	// Keep is as for [WithDisk].
	Keep kube.Keeper
	// Sharding confines informers to a part of the objects, which may change while they
	// run; nil means all objects. Sharded names the kinds that are confined, by objects
	// of them; none means all kinds.
	//
	// Reads of other shards' objects find nothing. Handlers of an informer learn of moved
	// objects if they are a MovedHandler of package cache; the event handlers of
	// controller-runtime's sources are not one.
	Sharding *kube.Sharding
	Sharded  []client.Object
}

// With is [NewCache] with more settings.
func With(s Settings) cache.NewCacheFunc {
	return func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		return newCache(cfg, opts, s)
	}
}

func newCache(cfg *rest.Config, opts cache.Options, s Settings) (cache.Cache, error) {
	if cfg == nil {
		return nil, errors.New("a cache needs a rest.Config")
	}
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	p, err := newPlan(cfg, opts)
	if err != nil {
		return nil, err
	}
	server, err := kube.NewClient(cfg, kube.WithHTTPClient(p.opts.HTTPClient))
	if err != nil {
		return nil, err
	}
	shards, err := s.shards(p.opts.Scheme)
	if err != nil {
		return nil, err
	}
	return &ctrlCache{
		plan: p, cfg: cfg, server: server, keep: s.Keep, shardOf: shards, writes: newWrites(),
		extents: map[kind]*extent{}, informers: map[informerKey]*scopedInformer{}, started: make(chan struct{}),
	}, nil
}

// NewInformer is for [cache.Options.NewInformer]: it lets controller-runtime's
// own cache run on informers of Tarn.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return tarncache.NewSharedIndexInformer(lw, example, resync, indexers)
}

var _ = cache.Options{NewInformer: NewInformer}

var (
	// errStartedTwice begins with controller-runtime's words, which users look for.
	errStartedTwice = errors.New("informer already started: a cache runs only once; make another one")

	errStopped = errors.New("the cache has stopped")
	errRemoved = errors.New("the informer was removed")
)

// ctrlCache holds the informers of a process and reads from them.
//
// It is one flat map from place to informer. controller-runtime nests three caches,
// by kind, by namespace and by form; each then starts, waits and fails by itself.
type ctrlCache struct {
	*plan
	cfg    *rest.Config
	server *kube.Client
	keep   kube.Keeper // without a Sink for none
	// shardOf is the shard of a kind; nil if it has all objects.
	shardOf func(schema.GroupVersionKind) *kube.Sharding
	writes  *writes

	// started is closed by Start.
	started chan struct{}
	running sync.WaitGroup

	mu        sync.RWMutex
	extents   map[kind]*extent
	informers map[informerKey]*scopedInformer
	// ctx is what the informers run with; nil before Start.
	ctx     context.Context
	stopped bool
	// wasRewound says that an informer, perhaps one that was removed since, has seen the
	// server go back in time.
	wasRewound bool
}

// Start runs the informers, those to come included, until ctx ends. It returns
// when all of them and their handlers have ended.
func (c *ctrlCache) Start(ctx context.Context) error {
	if err := c.begin(logr.NewContext(ctx, ctrllog.Log.WithName("cache"))); err != nil {
		return err
	}
	<-ctx.Done()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

func (c *ctrlCache) begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		return errStartedTwice
	}
	c.ctx = ctx
	for _, p := range c.informers {
		c.run(p)
	}
	close(c.started)
	return nil
}

// run starts an informer. The lock is held.
func (c *ctrlCache) run(p *scopedInformer) {
	c.running.Go(func() { p.run(c.ctx) })
}

// NeedLeaderElection tells the manager to start the cache on every replica of an
// operator.
func (c *ctrlCache) NeedLeaderElection() bool { return false }

// WaitForCacheSync waits until the cache was started and every informer that is
// there by then has synced.
func (c *ctrlCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	for _, p := range c.all() {
		if p.awaitSync(ctx, false) != nil && context.Cause(p.life) != errRemoved {
			return false
		}
	}
	return true
}

func (c *ctrlCache) all() []*scopedInformer {
	c.mu.RLock()
	defer c.mu.RUnlock()
	informers := make([]*scopedInformer, 0, len(c.informers))
	for _, p := range c.informers {
		informers = append(informers, p)
	}
	return informers
}

// extent returns what to watch of a kind. It queries the mapper, and so perhaps the
// server, only until it knows.
func (c *ctrlCache) extent(k kind) (*extent, error) {
	c.mu.RLock()
	e, ok := c.extents[k]
	c.mu.RUnlock()
	if ok {
		return e, nil
	}
	e, err := c.extentOf(k)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extents[k] = e
	return e, nil
}

// extentToRead is extent for a read. If reads make no informers, the mapper is not asked for
// kinds that none has been made of: they may not be served, or the server not be there.
func (c *ctrlCache) extentToRead(k kind) (*extent, error) {
	if c.opts.ReaderFailOnMissingInformer && len(c.namespaces(k)) == 0 && !c.known(k.gvk) {
		return nil, &cache.ErrResourceNotCached{GVK: k.gvk}
	}
	return c.extent(k)
}

// known says whether the extent of a kind is known, in any form.
func (c *ctrlCache) known(gvk schema.GroupVersionKind) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for f := range form(forms) {
		if _, ok := c.extents[kind{gvk, f}]; ok {
			return true
		}
	}
	return false
}

// obtain returns the informer at a place, made and started if need be, and whether
// the cache runs. fresh says that the informer had not synced when this call made it.
func (c *ctrlCache) obtain(at informerKey, e *extent) (p *scopedInformer, started, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.informers[at]; ok {
		return p, c.ctx != nil, false, nil
	}
	if c.stopped {
		return nil, true, false, fmt.Errorf("no informer can be added for %v: %w", at, errStopped)
	}
	if p, err = c.newScopedInformer(at, e); err != nil {
		return nil, false, false, err
	}
	if !c.rewound() {
		p.base = c.writes.base(at.gvk)
	}
	c.informers[at] = p
	fresh = !p.informer.HasSynced()
	if c.ctx != nil {
		c.run(p)
	}
	return p, c.ctx != nil, fresh, nil
}

// rewound says whether the server is known to have gone back in time: then the versions of
// former writes say nothing. The lock is held.
func (c *ctrlCache) rewound() bool {
	for _, p := range c.informers {
		c.wasRewound = c.wasRewound || p.rewinds() > 0
	}
	return c.wasRewound
}

// existing returns the informer at a place, if there is one, and whether the cache runs.
func (c *ctrlCache) existing(at informerKey) (p *scopedInformer, started bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.informers[at], c.ctx != nil
}
