package memory

import (
	"iter"
	"runtime"
	"sync"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory/query"
)

// Snapshot is one state of a store, for as long as it is needed. Taking one costs
// the same for any number of objects; keeping one costs the old version of each
// object that was written since.
//
// The garbage collector releases a snapshot that is no longer used; Close does so
// at once, which is better where they are taken often. Any number of goroutines may
// read it.
type Snapshot[T any] struct {
	store *Store[T]
	state *state[T]
	// close runs once, by Close or by the garbage collector.
	close   *sync.Once
	cleanup runtime.Cleanup
}

// Snapshot takes the newest state.
func (s *Store[T]) Snapshot() *Snapshot[T] {
	snap := &Snapshot[T]{store: s, state: s.pin(), close: new(sync.Once)}
	held := held[T]{s, snap.state, snap.close}
	snap.cleanup = runtime.AddCleanup(snap, held.release, struct{}{})
	return snap
}

// TakeSnapshot is Snapshot for code that uses stores through their interfaces. Its
// result is a *[Snapshot].
func (s *Store[T]) TakeSnapshot() tarn.Snapshot[T] { return s.Snapshot() }

// held keeps the state of a snapshot from being released.
type held[T any] struct {
	store *Store[T]
	state *state[T]
	once  *sync.Once
}

func (h held[T]) release(struct{}) { h.once.Do(func() { h.store.unpin(h.state) }) }

// Close releases the state. Later or concurrent reads may be incomplete.
func (n *Snapshot[T]) Close() {
	n.cleanup.Stop()
	held[T]{n.store, n.state, n.close}.release(struct{}{})
}

// Version is the state's version.
func (n *Snapshot[T]) Version() tarn.Version { return n.state.version }

// Len counts the objects.
func (n *Snapshot[T]) Len() int { return n.state.cells.n }

// Get returns the object under key.
func (n *Snapshot[T]) Get(key tarn.Key) (object T, ok bool) {
	defer runtime.KeepAlive(n)
	c := n.store.table.find(key)
	if c != nil {
		if v := c.at(n.state.seq); v != nil {
			if v.deleted() {
				return object, false
			}
			return v.object, true
		}
	}
	// The table has the newest cells. An older cell that was deleted since is still
	// in the state's own tree.
	if c, ok := n.state.cells.get(string(key)); ok {
		if v := c.at(n.state.seq); v != nil {
			return v.object, true
		}
	}
	return object, false
}

// All walks the objects in the order of keys.
func (n *Snapshot[T]) All() iter.Seq2[tarn.Key, T] { return n.within(span{}) }

// Prefix walks the objects whose key begins with prefix.
func (n *Snapshot[T]) Prefix(prefix tarn.Key) iter.Seq2[tarn.Key, T] {
	return n.within(query.PrefixSpan(string(prefix)))
}

// Range walks the objects from key from up to but not including key to; without
// an end if to is empty.
func (n *Snapshot[T]) Range(from, to tarn.Key) iter.Seq2[tarn.Key, T] {
	return n.within(span{From: string(from), To: string(to)})
}

func (n *Snapshot[T]) within(r span) iter.Seq2[tarn.Key, T] {
	return func(yield func(tarn.Key, T) bool) {
		n.state.walk(r, yield)
		runtime.KeepAlive(n)
	}
}

// Lookup walks the objects that an index has under a value. See [Store.Lookup].
func (n *Snapshot[T]) Lookup(index string, values ...any) (iter.Seq2[tarn.Key, T], error) {
	return n.looking(exactLookup(index, values))
}

// LookupPrefix walks the objects whose value begins with prefix. See
// [Store.LookupPrefix].
func (n *Snapshot[T]) LookupPrefix(index, prefix string, values ...any) (iter.Seq2[tarn.Key, T], error) {
	return n.looking(prefixLookup(index, prefix, values))
}

// LookupRange walks the objects whose values are at least from and less than to.
// See [Store.LookupRange].
func (n *Snapshot[T]) LookupRange(index string, from, to []any) (iter.Seq2[tarn.Key, T], error) {
	return n.looking(rangeLookup(index, from, to))
}

func (n *Snapshot[T]) looking(l lookup) (iter.Seq2[tarn.Key, T], error) {
	if _, _, err := locate(n.state, l); err != nil {
		return nil, err
	}
	return func(yield func(tarn.Key, T) bool) {
		n.state.lookup(l, yield)
		runtime.KeepAlive(n)
	}, nil
}
