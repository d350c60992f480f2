package tarn

import (
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"
)

// follower is one backlog with whether it wants Sync changes.
//
// It joins without stopping the writer: under the fan-out's lock it gets a snapshot of
// the store, and is a follower from then on. Its first content is made from the snapshot
// without the lock, while changes wait in early. A lock that covered that too would stall
// every update for as long as it takes to walk the store.
type follower[T any] struct {
	backlog *backlog[T]
	syncs   func() bool
	// moved says that it wants to see objects change the shard.
	moved bool
	// subscription is the subscription that empties the backlog; nil for an iterator.
	subscription *Subscription[T]

	// joining says that the first content is not in the backlog yet. early has what was
	// published since, in order; the fan-out's lock guards both.
	joining bool
	early   []batch[T]
	// late says that it joined before the store was loaded, and gets the content when that
	// is done.
	late bool
}

const (
	defaultBound = 10_000
	// resyncBatch is how many objects are offered again under one lock.
	resyncBatch = 512
)

// add appends changes. The fan-out's lock is held.
func (f *follower[T]) add(at time.Time, changes []Change[T]) {
	if f.joining {
		f.early = append(f.early, batch[T]{at, changes})
		return
	}
	f.backlog.add(at, changes)
}

// mark appends the end of the first state. The fan-out's lock is held.
func (f *follower[T]) mark(at time.Time) {
	if f.joining {
		f.early = append(f.early, batch[T]{at, []Change[T]{{Type: marked}}})
		return
	}
	f.backlog.mark(at)
}

// join adds a follower, which begins with the current content.
func (h *fanout[T]) join(bound int, syncs func() bool) (*follower[T], error) {
	f, initial, err := h.enter(bound, syncs, func(*follower[T]) {})
	if err == nil {
		h.bringUp(f, initial)
	}
	return f, err
}

// enter adds a follower. It returns the content that bringUp has to give to it, nil if
// it has that already.
func (h *fanout[T]) enter(bound int, syncs func() bool, attach func(*follower[T])) (*follower[T], Snapshot[T], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, fmt.Errorf("the subscriber was not added: the replica has %w", ErrStopped)
	}
	f := &follower[T]{syncs: syncs, backlog: newBacklog[T](func() int {
		if bound > 0 {
			return bound
		}
		return max(defaultBound, h.store.Len())
	})}
	var initial Snapshot[T]
	now := h.clock.Now()
	snapshots, ok := As[SnapshotStore[T]](h.store)
	switch {
	case h.restoring, h.ctx == nil && syncs():
		// What a program put into the store before the start is not the source's. The
		// first list shows what became of it, as a Sync if nothing did.
		f.late = true
	case ok:
		initial, f.joining = snapshots.TakeSnapshot(), true
	default:
		f.add(now, h.initial())
	}
	if h.synced {
		f.mark(now)
	}
	h.followers = append(h.followers, f)
	attach(f)
	return f, initial, nil
}

// bringUp gives a follower its first content, and then what was published meanwhile.
func (h *fanout[T]) bringUp(f *follower[T], initial Snapshot[T]) {
	if initial == nil {
		return
	}
	defer initial.Close()
	f.backlog.add(h.clock.Now(), h.adds(initial.Len(), initial.All()))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range f.early {
		if b.changes[0].Type == marked {
			f.backlog.mark(b.at)
		} else {
			f.backlog.add(b.at, b.changes)
		}
	}
	f.joining, f.early = false, nil
}

// startRestore lets followers join without content while the store is loaded.
func (h *fanout[T]) startRestore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restoring = true
}

// restored gives the content of the store to the followers that joined meanwhile, and if
// it is new, to all. mu is held.
func (h *fanout[T]) restored(isNew bool) {
	h.restoring = false
	var initial []Change[T]
	now := h.clock.Now()
	for _, f := range h.followers {
		if !isNew && !f.late {
			continue
		}
		if initial == nil {
			initial = h.initial()
		}
		f.add(now, initial)
		f.late = false
	}
}

// initial is the whole content, for a subscriber that has not seen anything.
func (h *fanout[T]) initial() []Change[T] { return h.adds(h.store.Len(), h.store.All()) }

func (h *fanout[T]) adds(size int, objects iter.Seq2[Key, T]) []Change[T] {
	adds := make([]Change[T], 0, size)
	for key, object := range objects {
		adds = append(adds, Change[T]{Type: Add, Initial: true, Key: key, Object: object})
	}
	h.addVersions(adds)
	return adds
}

// minPerGoroutine is the least number of objects for a goroutine.
const minPerGoroutine = 4096

// addVersions reads the versions of objects, in several goroutines if there are many: each
// object has to be fetched from memory, and after a restart no other work is waiting.
func (h *fanout[T]) addVersions(adds []Change[T]) {
	var working sync.WaitGroup
	each := max(len(adds)/runtime.GOMAXPROCS(0)+1, minPerGoroutine)
	for from := 0; from < len(adds); from += each {
		part := adds[from:min(from+each, len(adds))]
		describe := func() {
			for i := range part {
				part[i].Version = h.versionOf(part[i].Object)
			}
		}
		if from+each < len(adds) {
			working.Go(describe)
		} else {
			describe()
		}
	}
	working.Wait()
}

func (h *fanout[T]) leave(f *follower[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.followers, f); i >= 0 {
		h.followers = slices.Delete(h.followers, i, i+1)
	}
	f.backlog.close()
}

// resync offers everything again whose key has a prefix. It does so in batches, each of
// the state that the store then has, so that it stalls no update and no subscriber gets a
// state older than its last one. Objects that were added meanwhile have just been
// delivered.
func (h *fanout[T]) resync(prefix Key) error {
	if !h.wantsSync() {
		return nil
	}
	var keys []Key
	for key := range withPrefix(h.store, prefix) {
		keys = append(keys, key)
	}
	for batch := range slices.Chunk(keys, resyncBatch) {
		h.offerAgain(batch)
	}
	return nil
}

func (h *fanout[T]) offerAgain(keys []Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := make([]Change[T], 0, len(keys))
	for _, key := range keys {
		if object, ok := h.store.Get(key); ok {
			again = append(again, Change[T]{Type: Sync, Key: key, Old: object, Object: object, Version: h.versionOf(object)})
		}
	}
	h.publish(nil, again)
}
