package ctrlcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/kube"
)

// informerKey names one informer: a kind under the settings of one namespace.
type informerKey struct {
	kind
	// namespace is a key of extent.configs.
	namespace string
}

// scopedInformer is one informer and its life. A kind that is watched in three namespaces
// has up to three, each made when it is first needed: who may read only one of
// the namespaces can read that one.
type scopedInformer struct {
	informerKey
	*extent
	config   ctrl.Config
	informer toolscache.SharedIndexInformer
	// goType is that of the objects as they come from the server.
	goType reflect.Type
	// replica is nil if the informer is not one of ours.
	replica *tarn.Replica[any]
	// sharding is what the informer is confined to; nil if it has all objects.
	sharding *kube.Sharding
	// current lists what the server has now; see the function.
	current func(ctx context.Context, least tarn.Version) (map[tarn.Key]tarn.Version, tarn.Version, error)
	// base is the version that the first state must have at least, for an informer
	// that was made after writes that reads must show.
	base tarn.Version

	// life ends when the informer is removed, or the cache stopped; end ends it.
	life context.Context
	end  context.CancelCauseFunc
	// reporters are the goroutines that follow the informer's version; they end
	// with its life, and none begins after it.
	reportersMu sync.Mutex
	reporters   sync.WaitGroup
}

func newScopedInformer(at informerKey, e *extent, informer toolscache.SharedIndexInformer, example client.Object) *scopedInformer {
	p := &scopedInformer{
		informerKey: at, extent: e, config: e.configs[at.namespace],
		informer: informer, goType: reflect.TypeOf(example),
	}
	p.replica, _ = cache.ReplicaOf(informer)
	p.life, p.end = context.WithCancelCause(context.Background())
	return p
}

// run runs the informer until ctx or its life ends.
func (p *scopedInformer) run(ctx context.Context) {
	defer p.reporters.Wait()
	defer func() {
		p.reportersMu.Lock()
		defer p.reportersMu.Unlock()
		p.end(errStopped)
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })()
	p.informer.RunWithContext(ctx)
	<-ctx.Done() // a user's own informer may run elsewhere and return at once
}

// report runs f as long as the informer lives; f ends when the informer does.
func (p *scopedInformer) report(f func()) {
	p.reportersMu.Lock()
	defer p.reportersMu.Unlock()
	if p.life.Err() == nil {
		p.reporters.Go(f)
	}
}

// detachable is a watch error handler for which the informer waits only as long as
// the informer lives: it may remove its own informer, and waits for its end then.
func (p *scopedInformer) detachable(handler toolscache.WatchErrorHandlerWithContext) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		done := make(chan struct{})
		p.report(func() {
			defer close(done)
			handler(ctx, r, err)
		})
		select {
		case <-done:
		case <-p.life.Done():
		}
	}
}

// awaitSync waits until the informer has its first whole state. The error says
// what keeps it from that, and is a timeout in controller-runtime's words.
//
// A context that has ended before fails for a fresh informer, one that was not synced
// when the caller made it, however soon it syncs.
func (p *scopedInformer) awaitSync(ctx context.Context, fresh bool) error {
	if tooLate := fresh && ctx.Err() != nil; !tooLate && p.informer.HasSynced() {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })()
	if ctx.Err() == nil && p.waitSynced(ctx) {
		return nil
	}
	why := context.Cause(ctx).Error()
	if p.replica != nil {
		if err := p.replica.Health().Err; err != nil {
			why = fmt.Sprintf("%v (gave up: %s)", err, why)
		}
	}
	return apierrors.NewTimeoutError(fmt.Sprintf("failed waiting for %v Informer to sync, of %v: %s", p.goType, p.informerKey, why), 0)
}

// waitSynced waits for the first state, and not for handlers: readers do not need them.
func (p *scopedInformer) waitSynced(ctx context.Context) bool {
	if p.replica == nil {
		return cache.WaitForCacheSync(ctx.Done(), p.informer.HasSynced)
	}
	select {
	case <-p.replica.Synced():
		return true
	case <-ctx.Done():
		return false
	}
}

// version is the state that reads of this informer show.
func (p *scopedInformer) version() tarn.Version {
	if p.replica != nil {
		return p.replica.Version()
	}
	return tarn.Version(p.informer.GetStore().LastStoreSyncResourceVersion())
}

// foreignPoll is how often the version of a foreign informer is polled; it cannot
// be waited for.
const foreignPoll = 5 * time.Millisecond

// reach waits until reads of this informer show a version or a later one.
func (p *scopedInformer) reach(ctx context.Context, v tarn.Version) error {
	if p.replica != nil {
		return p.replica.WaitFor(ctx, v)
	}
	for p.version().OlderThan(v) || p.version() == "" {
		select {
		case <-time.After(foreignPoll):
		case <-p.life.Done():
			return fmt.Errorf("waiting for version %s of %v: %w", v, p.informerKey, context.Cause(p.life))
		case <-ctx.Done():
			return fmt.Errorf("%v: version %s not reached, the copy is at %q: %w", p.informerKey, v, p.version(), context.Cause(ctx))
		}
	}
	return nil
}

// rewinds is how often the server went back in time, as after a restore from a backup.
func (p *scopedInformer) rewinds() int64 {
	if p.replica == nil {
		return 0
	}
	return p.replica.Health().Rewinds
}

// rewoundSince says whether the server went back in time more often than that, and the
// informer follows it again.
func (p *scopedInformer) rewoundSince(before int64) bool {
	if p.replica == nil {
		return false
	}
	h := p.replica.Health()
	return h.Rewinds > before && h.State == tarn.StateWatching
}

// rewindPoll is how often a waiter looks for rewinds, which cannot be waited for.
const rewindPoll = time.Second

var errLook = errors.New("it is time to look for a rewind")

// reachUnlessRewound is reach, except that it ends when the server has gone back in time
// since: then the version is one of a history that is no more.
func (p *scopedInformer) reachUnlessRewound(ctx context.Context, v tarn.Version, since int64) (rewound bool, err error) {
	for p.version() == "" || p.version().OlderThan(v) {
		if p.rewoundSince(since) {
			return true, nil
		}
		turn, cancel := context.WithTimeoutCause(ctx, rewindPoll, errLook)
		err := p.reach(turn, v)
		cancel()
		if err != nil && !errors.Is(err, errLook) {
			return false, err
		}
	}
	return false, nil
}

func (at informerKey) String() string {
	if at.namespace == "" {
		return at.gvk.String()
	}
	return fmt.Sprintf("%v in namespace %s", at.gvk, at.namespace)
}

// resyncPeriod is within a tenth of the configured period, so that the informers of
// a process do not all resync at once.
func resyncPeriod(config ctrl.Config) time.Duration {
	period := ptr.Deref(config.SyncPeriod, standardSyncPeriod)
	return time.Duration(float64(period) * (0.9 + 0.2*rand.Float64()))
}
