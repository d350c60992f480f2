package informers

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/roster"
)

// SharedInformerFactory makes at most one informer for each type, starts those that
// were requested, and waits for them.
type SharedInformerFactory = informers.SharedInformerFactory

// NewSharedInformerFactory makes a factory for all namespaces.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory makes a factory for one namespace whose
// requests go through tweakListOptions.
//
// Deprecated: use [NewSharedInformerFactoryWithOptions], which says the same by
// options.
func NewFilteredSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration, namespace string, tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync,
		WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewSharedInformerFactoryWithOptions makes a factory. The client may be nil as
// long as nothing is started, as in tests that fill the indexers by hand.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration, options ...SharedInformerOption) SharedInformerFactory {
	f := &factory{
		settings: settings{
			client:   client,
			resync:   defaultResync,
			resyncOf: map[reflect.Type]time.Duration{},
		},
		members: map[reflect.Type]*member{},
	}
	for _, choose := range options {
		choose(&f.settings)
	}
	if f.keep.Sink != nil && f.wire == nil {
		roster.ReportUnkept()
	}
	if f.wire == nil {
		f.shards.ReportWhole()
	}
	return f
}

// factory is the SharedInformerFactory of this package. Its methods by API
// group are in groups.go.
//
// For users, InformerFor takes the informer that the caller builds; the typed
// packages get it through [ours], which ignores that informer.
type factory struct {
	settings

	running sync.WaitGroup // the informers that have been started

	mu         sync.Mutex
	members    map[reflect.Type]*member
	clientsets clientsets
	closed     bool // nothing starts any more
}

// member is an informer of a factory.
type member struct {
	cache.SharedIndexInformer
	started bool
}

// InformerFor returns the informer for the type of object. The first call for a
// type builds it; later ones return the same, whatever they would have built.
func (f *factory) InformerFor(object runtime.Object, build internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	t := reflect.TypeOf(object)
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[t]; ok {
		return m.SharedIndexInformer
	}
	informer := build(f.client, f.resyncFor(t))
	if f.transform != nil {
		if err := informer.SetTransform(f.transform); err != nil {
			utilruntime.HandleError(fmt.Errorf("informer for %v: its objects will not be transformed: %w; give InformerFor an informer that is not running yet", t, err))
		}
	}
	if f.unshared {
		_ = cache.ShareStructure(informer, false) // fails for what is not ours and shares nothing
	}
	f.members[t] = &member{SharedIndexInformer: informer}
	return informer
}

// InformerName is the name that the informers have in metrics; nil for none.
func (f *factory) InformerName() *cache.InformerName { return f.name }

// Start is StartWithContext with a channel.
func (f *factory) Start(stop <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stop))
}

// StartWithContext starts the requested informers that are not started yet; they
// run until ctx ends. After Shutdown it does nothing.
func (f *factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	for _, m := range f.members {
		if m.started {
			continue
		}
		m.started = true
		f.running.Go(func() { m.RunWithContext(ctx) })
	}
}

// Shutdown prevents further starts, waits until everything that was started has
// ended, and releases the informers' name. It does not end them: the contexts that
// they were started with do. It may be called more than once.
func (f *factory) Shutdown() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()

	f.running.Wait()
	f.name.Release()
}

// WaitForCacheSync is WaitForCacheSyncWithContext with a channel.
func (f *factory) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext waits until the informers that are started now
// have synced, or ctx ends, and says which have.
func (f *factory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	started := f.started()
	checks := make([]cache.DoneChecker, 0, len(started))
	for _, informer := range started {
		checks = append(checks, informer.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checks...)

	result := cache.SyncResult{Synced: make(map[reflect.Type]bool, len(started))}
	for t, informer := range started {
		synced := informer.HasSynced()
		result.Synced[t] = synced
		if !synced {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

// started returns the informers that have been started, by type.
func (f *factory) started() map[reflect.Type]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	started := make(map[reflect.Type]cache.SharedIndexInformer, len(f.members))
	for t, m := range f.members {
		if m.started {
			started[t] = m.SharedIndexInformer
		}
	}
	return started
}
