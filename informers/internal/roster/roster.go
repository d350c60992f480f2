// Package roster is the factory behind the packages whose informers are named by
// their resource: dynamicinformer and metadatainformer differ only in what they
// put into it.
package roster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"

	"github.com/tarnproject/tarn/cache"
)

// Factory makes at most one informer for each resource, starts those that were
// asked for, and waits for them. It is client-go's DynamicSharedInformerFactory
// and its metadata SharedInformerFactory.
type Factory struct {
	build   func(schema.GroupVersionResource) informers.GenericInformer
	running sync.WaitGroup // the informers that have been started

	mu      sync.Mutex
	members map[schema.GroupVersionResource]*member
	closed  bool // nothing starts any more
}

type member struct {
	informers.GenericInformer
	started bool
}

// New makes a factory of what build makes for a resource.
func New(build func(schema.GroupVersionResource) informers.GenericInformer) *Factory {
	return &Factory{build: build, members: map[schema.GroupVersionResource]*member{}}
}

// ForResource returns the informer for a resource.
func (f *Factory) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[resource]
	if !ok {
		m = &member{GenericInformer: f.build(resource)}
		f.members[resource] = m
	}
	return m.GenericInformer
}

// Start is StartWithContext for callers with a channel.
func (f *Factory) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

// StartWithContext starts the informers that have been asked for and are not
// started yet; they run until ctx ends. After Shutdown it does nothing.
func (f *Factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	for _, m := range f.members {
		if !m.started {
			m.started = true
			f.running.Go(func() { m.Informer().RunWithContext(ctx) })
		}
	}
}

// WaitForCacheSync waits until the informers that are started now have synced,
// or stop is closed, and says which have.
func (f *Factory) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	started := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	var checks []cache.DoneChecker
	f.mu.Lock()
	for resource, m := range f.members {
		if m.started {
			started[resource] = m.Informer()
			checks = append(checks, m.Informer().HasSyncedChecker())
		}
	}
	f.mu.Unlock()

	cache.WaitFor(wait.ContextForChannel(stop), "", checks...)
	synced := make(map[schema.GroupVersionResource]bool, len(started))
	for resource, informer := range started {
		synced[resource] = informer.HasSynced()
	}
	return synced
}

// Shutdown lets nothing start any more and waits until all that was started has
// ended. It does not end them: that is up to what they were started with. It may
// be called more than once.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.running.Wait()
}
