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
// that takes the highest version it has been told for the state of the cache. Its
// type is internal; what it can do tells it from other handlers.
type writeWaiter interface {
	toolscache.ResourceEventHandler
	SetMinimumRV(key types.NamespacedName, version int64)
	AddPendingDelete(key types.NamespacedName, uid types.UID)
	WaitForGet(ctx context.Context, key types.NamespacedName) error
	WaitForList(ctx context.Context) error
}

// listening returns what to register for a handler with these parts: the handler
// itself, or a feed if it waits for versions.
func listening(h toolscache.ResourceEventHandler, parts ...*part) toolscache.ResourceEventHandler {
	waiter, ok := h.(writeWaiter)
	if !ok {
		return h
	}
	for _, p := range parts {
		if p.replica == nil {
			return h
		}
	}
	f := &feed{waiter: waiter, parts: parts, reached: make([]tarn.Version, len(parts))}
	for i, p := range parts {
		p.feed(func() { f.follow(p, i) })
	}
	if len(parts) > 1 {
		parts[0].feed(func() { f.nudge(parts[0].life) })
	}
	return f
}

// feed tells a writeWaiter the version that all parts have reached, and what was
// deleted.
//
// Why not pass the events on, as controller-runtime's cache does: an event in one
// namespace says nothing about the others, so a write there would be taken for
// seen; changes of a key that were folded into one, or into none, would be waited
// for in vain; and a bookmark, which can end a wait, is no event.
type feed struct {
	waiter writeWaiter
	parts  []*part

	mu      sync.Mutex
	reached []tarn.Version
	told    tarn.Version
}

// follow tells where part i has got to, until its life ends.
func (f *feed) follow(p *part, i int) {
	for {
		now := p.replica.Version()
		f.advance(i, now)
		next, ok := after(now)
		if !ok || p.replica.WaitFor(p.life, next) != nil {
			return
		}
	}
}

// advance notes where part i is and tells the waiter if all have come further.
func (f *feed) advance(i int, v tarn.Version) {
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
	if least == "" || f.told != "" && !f.told.OlderThan(least) {
		return
	}
	f.told = least
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

func (f *feed) OnAdd(any, bool) {}

// OnUpdate tells of the deletion that is hidden in an update to another object of
// the same name, as a relist shows it.
func (f *feed) OnUpdate(before, now any) {
	was, ok := before.(client.Object)
	is, isObject := now.(client.Object)
	if ok && isObject && was.GetUID() != is.GetUID() {
		f.deleted(was)
	}
}

func (f *feed) OnDelete(object any) {
	if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if was, ok := object.(client.Object); ok {
		f.deleted(was)
	}
}

// deleted tells of a deletion without its version, which would stand for that of
// all parts.
func (f *feed) deleted(o client.Object) {
	f.waiter.OnDelete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: "0",
	}})
}
