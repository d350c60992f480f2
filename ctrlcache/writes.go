package ctrlcache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
)

// writes holds the writes of this process through clients of [NewClient] that some
// copy may not show yet.
//
// A mark is kept per key and checked on the informer that is read, of any form and
// namespace. It is dropped when all informers that could show the key do, so that
// their number is bounded by how far the copies lag.
type writes struct {
	// used says that there is a client that marks: until then reads do not look.
	used  atomic.Bool
	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]*kindWrites
}

type kindWrites struct {
	// base is a version that covers all marks that went: informers made later must
	// not begin before it.
	base    tarn.Version
	marks   map[client.ObjectKey]mark
	pending map[*pendingWrite]struct{}
	// swept is how many marks the last sweep left.
	swept int
}

// mark is what a copy must have seen of a key: a version, and perhaps the delete of
// an object.
type mark struct {
	version tarn.Version
	gone    types.UID
	// uid, if known, is that of all states of the mark; an object's shard depends on it.
	uid types.UID
	// labels, if known, are those of every state of the mark.
	labels labels.Set
	known  bool
	// answer, until the write has ended, is the object as the server answered; nil if the
	// answer was not one. omitted says of the informer of each form that its field selector
	// does not select the answer, nor any other state of the mark.
	answer  client.Object
	omitted [forms]bool
	// rewinds says, for the informer of each form, how often the server had gone back in
	// time when the write ended. An informer that was read again after another time
	// shows what is left of the write, at versions that may be lower.
	rewinds [forms]int64
}

// follows adds what was marked before and may not have been seen yet.
func (m mark) follows(before mark) mark {
	if m.rewinds != before.rewinds {
		return m
	}
	if m.version.OlderThan(before.version) {
		m.version = before.version
	}
	m.known = m.known && before.known && labels.Equals(m.labels, before.labels)
	if m.uid != before.uid {
		m.uid = ""
	}
	for f := range m.omitted {
		m.omitted[f] = m.omitted[f] && before.omitted[f]
	}
	return m
}

// pendingWrite is a write that is under way.
type pendingWrite struct {
	key  client.ObjectKey
	done chan struct{}
}

func newWrites() *writes {
	return &writes{kinds: map[schema.GroupVersionKind]*kindWrites{}}
}

// of returns what was written of a kind. The lock is held.
func (w *writes) of(gvk schema.GroupVersionKind) *kindWrites {
	k, ok := w.kinds[gvk]
	if !ok {
		k = &kindWrites{marks: map[client.ObjectKey]mark{}, pending: map[*pendingWrite]struct{}{}}
		w.kinds[gvk] = k
	}
	return k
}

func (w *writes) base(gvk schema.GroupVersionKind) tarn.Version {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if k, ok := w.kinds[gvk]; ok {
		return k.base
	}
	return ""
}

// begin records that a write starts. Reads that start before its end wait for it.
func (w *writes) begin(gvk schema.GroupVersionKind, key client.ObjectKey) *pendingWrite {
	w.used.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &pendingWrite{key, make(chan struct{})}
	w.of(gvk).pending[f] = struct{}{}
	return f
}

// finishWrite ends the writes of one request. marks has their results.
func (c *ctrlCache) finishWrite(gvk schema.GroupVersionKind, marks map[client.ObjectKey]mark, of ...*pendingWrite) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	w := c.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.of(gvk)
	for _, f := range of {
		delete(k.pending, f)
		close(f.done)
	}
	for key, m := range marks {
		if _, ok := m.version.Compare(m.version); !ok {
			continue // nothing that could be waited for
		}
		for p := range c.showing(gvk, key) {
			m.rewinds[p.form], m.omitted[p.form] = p.rewinds(), p.omits(m.answer)
		}
		m.answer = nil
		c.sweep(gvk, k, key) // a mark that every copy shows is not merged into the new one
		if before, ok := k.marks[key]; ok {
			m = m.follows(before)
		}
		k.marks[key] = m
	}
	if len(k.marks) > 2*k.swept+64 {
		for key := range k.marks {
			c.sweep(gvk, k, key)
		}
		k.swept = len(k.marks)
	}
}

// sweep drops a mark if every informer shows it that could. Both locks are held: an
// informer that is made meanwhile must either be checked or know the base.
func (c *ctrlCache) sweep(gvk schema.GroupVersionKind, k *kindWrites, key client.ObjectKey) {
	m, ok := k.marks[key]
	if !ok {
		return
	}
	covered := m.version
	for p := range c.showing(gvk, key) {
		version := p.version() // before the object is looked at, which is then newer
		if !p.shows(key, m) {
			return
		}
		if covered.OlderThan(version) {
			covered = version
		}
	}
	delete(k.marks, key)
	if k.base == "" || k.base.OlderThan(covered) {
		k.base = covered
	}
}

// showing are the informers that could show an object with this key. The lock is held.
func (c *ctrlCache) showing(gvk schema.GroupVersionKind, key client.ObjectKey) iter.Seq[*scopedInformer] {
	return func(yield func(*scopedInformer) bool) {
		for f := range form(forms) {
			e, ok := c.extents[kind{gvk, f}]
			if !ok {
				continue
			}
			home, _ := e.home(key.Namespace)
			if p, ok := c.informers[informerKey{kind{gvk, f}, home}]; ok && !yield(p) {
				return
			}
		}
	}
}

// shows says whether reads of this informer show what was written.
func (p *scopedInformer) shows(key client.ObjectKey, m mark) bool {
	at, ok := p.version().Compare(m.version)
	return p.never(key, m) || ok && at >= 0 && !p.holdsGone(key, m) || p.rewoundSince(m.rewinds[p.form])
}

// holdsGone says whether the informer still has the object that was deleted.
//
// A transform may have removed the uid. Then an object that is no newer than the deleted
// one was is taken for that one.
func (p *scopedInformer) holdsGone(key client.ObjectKey, m mark) bool {
	if m.gone == "" {
		return false
	}
	object := p.held(key)
	if object == nil {
		return false
	}
	if uid := object.GetUID(); uid != "" {
		return uid == m.gone
	}
	newer, ok := tarn.Version(object.GetResourceVersion()).Compare(m.version)
	return ok && newer <= 0
}

// held is the object that the informer has under a key, nil for none.
func (p *scopedInformer) held(key client.ObjectKey) client.Object {
	object, ok, err := p.informer.GetStore().GetByKey(storeKey(key))
	if !ok || err != nil {
		return nil
	}
	held, _ := object.(client.Object)
	return held
}

// awaitKey waits until a read of key from this informer shows all writes that began
// before.
func (c *ctrlCache) awaitKey(ctx context.Context, p *scopedInformer, key client.ObjectKey) error {
	return c.await(ctx, p, func(k client.ObjectKey) bool { return k == key }, func(k *kindWrites) map[client.ObjectKey]mark {
		if m, ok := k.marks[key]; ok {
			return map[client.ObjectKey]mark{key: m}
		}
		return nil
	})
}

// awaitAll is awaitKey for all keys of a namespace, or of all.
func (c *ctrlCache) awaitAll(ctx context.Context, p *scopedInformer, namespace string) error {
	concerns := func(k client.ObjectKey) bool {
		home, ok := p.home(k.Namespace)
		return ok && home == p.namespace && (namespace == "" || namespace == k.Namespace)
	}
	return c.await(ctx, p, concerns, func(k *kindWrites) map[client.ObjectKey]mark {
		marks := maps.Clone(k.marks)
		maps.DeleteFunc(marks, func(key client.ObjectKey, _ mark) bool { return !concerns(key) })
		return marks
	})
}

// await waits for the pending writes that concern a read, then for the marks it chooses.
func (c *ctrlCache) await(ctx context.Context, p *scopedInformer, concerns func(client.ObjectKey) bool, choose func(*kindWrites) map[client.ObjectKey]mark) error {
	if !c.writes.used.Load() {
		return nil
	}
	if p.base != "" && p.version().OlderThan(p.base) {
		if _, err := p.reachUnlessRewound(ctx, p.base, 0); err != nil {
			return unseen(ctx, p, err)
		}
	}
	for _, f := range c.writes.underWay(p.gvk, concerns) {
		select {
		case <-f.done:
		case <-ctx.Done():
			return unseen(ctx, p, fmt.Errorf("a write of %v has not returned: %w", f.key, context.Cause(ctx)))
		}
	}
	for key, m := range c.writes.marked(p.gvk, choose) {
		if err := p.awaitMark(ctx, key, m); err != nil {
			return unseen(ctx, p, err)
		}
		c.seen(p.gvk, key)
	}
	return nil
}

// unseen is the error of a read that gave up. Programs look for the error of the context in
// it, even if the context was cancelled with a cause.
func unseen(ctx context.Context, p *scopedInformer, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return fmt.Errorf("the cache of %v does not show this process's own writes yet: %w", p.informerKey, err)
}

func (p *scopedInformer) awaitMark(ctx context.Context, key client.ObjectKey, m mark) error {
	for {
		next, ok := after(p.version()) // before the object is looked at
		if p.shows(key, m) || !ok {
			return nil
		}
		// An object that is not selected any more leaves the copy by an event before that
		// version, and there may be no later event.
		if next.OlderThan(m.version) && !p.excludes(key, m) {
			next = m.version
		}
		if _, err := p.reachUnlessRewound(ctx, next, m.rewinds[p.form]); err != nil {
			if m.version.OlderThan(next) {
				err = fmt.Errorf("%v was deleted: %w", key, err)
			}
			return err
		}
	}
}

func (w *writes) underWay(gvk schema.GroupVersionKind, concerns func(client.ObjectKey) bool) (found []*pendingWrite) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if k, ok := w.kinds[gvk]; ok {
		for f := range k.pending {
			if concerns(f.key) {
				found = append(found, f)
			}
		}
	}
	return found
}

func (w *writes) marked(gvk schema.GroupVersionKind, choose func(*kindWrites) map[client.ObjectKey]mark) map[client.ObjectKey]mark {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if k, ok := w.kinds[gvk]; ok && len(k.marks) > 0 {
		return choose(k)
	}
	return nil
}

// seen drops a mark that no informer lacks any more.
func (c *ctrlCache) seen(gvk schema.GroupVersionKind, key client.ObjectKey) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.writes.mu.Lock()
	defer c.writes.mu.Unlock()
	c.sweep(gvk, c.writes.of(gvk), key)
}
