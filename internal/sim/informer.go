package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/internal/adapter"
)

// informerCopy is a shared informer of package cache, fed by a lister-watcher.
//
// Its followers are handlers. Their backlogs have the default bound, which no
// day reaches, so that every change is delivered.
type informerCopy struct {
	day      *day
	informer cache.SharedIndexInformer
	replica  *tarn.Replica[any]

	mu       sync.Mutex
	handlers map[*follower]cache.ResourceEventHandlerRegistration
}

func newInformerCopy(d *day) *informerCopy {
	c := &informerCopy{day: d, handlers: map[*follower]cache.ResourceEventHandlerRegistration{}}
	lw := &listerWatcher{source: d.source(), noWatchList: d.chance("informer").IntN(2) == 0}
	c.informer = cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, cache.Indexers{})
	c.replica, _ = cache.ReplicaOf(c.informer)
	must(tarn.AdaptReplica(adapter.Key{}, c.replica).Configure(func(o *tarn.Options[any]) { o.Jitter, o.Delay = d.jitter, nil }))
	must(c.informer.SetTransform(func(o any) (any, error) {
		if cm := o.(*corev1.ConfigMap); cm.Annotations["poison"] != "" {
			return nil, errPoison
		}
		return o, nil
	}))
	must(c.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		d.record.note("copy", "reports: %v", err)
	}))
	return c
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// asConfigMap converts an object of the server to the form that the informer gets.
func asConfigMap(o *Object) *corev1.ConfigMap {
	if o == nil {
		return nil
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: types.UID(o.UID), ResourceVersion: string(o.Version)}}
	if o.Poison {
		cm.Annotations = map[string]string{"poison": "yes"}
	}
	return cm
}

func (c *informerCopy) run(ctx context.Context) { c.informer.RunWithContext(ctx) }

func (c *informerCopy) follow(f *follower) func() {
	handle, err := c.informer.AddEventHandler(handler{f})
	if err != nil {
		c.day.record.violate(f.name, "order", "could not follow: %v", err)
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers[f] = handle
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.handlers, f)
		must(c.informer.RemoveEventHandler(handle))
	}
}

// handler converts client-go's notifications to changes for a follower.
type handler struct{ f *follower }

func (h handler) OnAdd(obj any, _ bool) {
	cm := obj.(*corev1.ConfigMap)
	h.f.take(tarn.Add, keyOf(cm), nil, tell(cm))
}

func (h handler) OnUpdate(old, obj any) {
	cm := obj.(*corev1.ConfigMap)
	kind := tarn.Update
	if old == obj {
		kind = tarn.Sync
	}
	h.f.take(kind, keyOf(cm), old, tell(cm))
}

func (h handler) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	cm := obj.(*corev1.ConfigMap)
	h.f.take(tarn.Delete, keyOf(cm), nil, tell(cm))
}

func keyOf(cm *corev1.ConfigMap) tarn.Key { return tarn.Key(cm.Name) }

func tell(cm *corev1.ConfigMap) told {
	return told{object: cm, version: tarn.Version(cm.ResourceVersion), uid: string(cm.UID)}
}

func (c *informerCopy) followers(visit func(*follower, tarn.Lag)) {
	c.mu.Lock()
	all := slices.SortedFunc(maps.Keys(c.handlers), cmpNames)
	c.mu.Unlock()
	for _, f := range all {
		// client-go's interfaces do not report how much waits. For a punctual
		// follower nothing waits once all is calm.
		lag := tarn.Lag{}
		if !f.keepsUp() {
			lag.Pending = 1
		}
		visit(f, lag)
	}
}

func (c *informerCopy) health() tarn.Health   { return c.replica.Health() }
func (c *informerCopy) version() tarn.Version { return c.replica.Version() }

func (c *informerCopy) content() map[tarn.Key]tarn.Version {
	out := map[tarn.Key]tarn.Version{}
	for _, o := range c.informer.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		out[keyOf(cm)] = tarn.Version(cm.ResourceVersion)
	}
	return out
}

// read cannot be judged here: the informer's store is its own.
func (c *informerCopy) read() (State, bool) {
	seen := map[string]bool{}
	for _, key := range c.informer.GetStore().ListKeys() {
		if seen[key] {
			return nil, false
		}
		seen[key] = true
	}
	return nil, true
}

var errDecoding = errors.New("unable to decode an event from the watch stream")

func decodingError(err error) error { return fmt.Errorf("%w: %w", errDecoding, err) }
