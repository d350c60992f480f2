package ctrlcache

import (
	"context"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
)

// writeWaiter is how controller-runtime's client waits for its own writes, with
// client.CacheOptions.EnableReadYourWritesConsistency: a handler on the informer
// that treats the highest version it receives as the state of the cache. Its type
// is internal; its methods distinguish it from other handlers.
type writeWaiter interface {
	toolscache.ResourceEventHandler
	SetMinimumRV(key types.NamespacedName, version int64)
	AddPendingDelete(key types.NamespacedName, uid types.UID)
	WaitForGet(ctx context.Context, key types.NamespacedName) error
	WaitForList(ctx context.Context) error
}

// handlerFor returns what to register for a handler with these informers: the handler
// itself, or a feed if it waits for versions.
func handlerFor(h toolscache.ResourceEventHandler, informers ...*scopedInformer) toolscache.ResourceEventHandler {
	waiter, ok := h.(writeWaiter)
	if !ok {
		return h
	}
	for _, p := range informers {
		if p.replica == nil {
			return h
		}
	}
	f := &versionReporter{waiter: waiter, informers: informers, reached: make([]tarn.Version, len(informers))}
	for i, p := range informers {
		p.report(func() { f.follow(p, i) })
	}
	if len(informers) > 1 {
		informers[0].report(func() { f.probeLagging(informers[0].life) })
	}
	return f
}

// versionReporter passes the version that all informers have reached, and deletes,
// to a writeWaiter.
//
// Why not pass the events on, as controller-runtime's cache does: an event in one
// namespace says nothing about the others, so a write there would count as seen;
// changes of a key that were folded into one, or into none, would be waited for in
// vain; and a bookmark, which can end a wait, is not an event.
type versionReporter struct {
	waiter    writeWaiter
	informers []*scopedInformer

	mu       sync.Mutex
	reached  []tarn.Version
	reported tarn.Version
}

// follow reports the progress of informer i, until its life ends.
func (f *versionReporter) follow(p *scopedInformer, i int) {
	for {
		now := p.replica.Version()
		f.advance(i, now)
		next, ok := after(now)
		if !ok || p.replica.WaitFor(p.life, next) != nil {
			return
		}
	}
}

// advance records the version of informer i and reports the oldest of all if that
// has advanced.
func (f *versionReporter) advance(i int, v tarn.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.OlderThan(f.reached[i]) {
		return // the bookmark of a probe was further
	}
	f.reached[i] = v
	least := v
	for _, r := range f.reached {
		if r == "" {
			return
		}
		if r.OlderThan(least) {
			least = r
		}
	}
	if least == "" || f.reported != "" && !f.reported.OlderThan(least) {
		return
	}
	f.reported = least
	f.waiter.OnUpdate(nil, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: string(least)}})
}

// after is the next version, if versions can be counted.
func after(v tarn.Version) (tarn.Version, bool) {
	if v == "" {
		return "1", true
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	return tarn.Version(strconv.FormatUint(n+1, 10)), err == nil
}

func (f *versionReporter) OnAdd(any, bool) {}

// OnUpdate reports the delete that is hidden in an update to another object of the
// same name, as after a relist.
func (f *versionReporter) OnUpdate(before, now any) {
	was, ok := before.(client.Object)
	is, isObject := now.(client.Object)
	if ok && isObject && was.GetUID() != is.GetUID() {
		f.deleted(was)
	}
}

func (f *versionReporter) OnDelete(object any) {
	if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if was, ok := object.(client.Object); ok {
		f.deleted(was)
	}
}

// deleted reports a delete without its version, which would count as that of all
// informers.
func (f *versionReporter) deleted(o client.Object) {
	f.waiter.OnDelete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: "0",
	}})
}
