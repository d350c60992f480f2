package memory

import (
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// Store keeps objects by key, with their version, and finds them by index and by
// query. It is a [tarn.ReadStore].
//
//   - Any number of goroutines may read and write; each write is one step.
//   - No write waits for reads. Get waits for nothing; other reads may at their
//     beginning wait for the write of an object, never for a large write. Writes
//     wait for each other.
//   - Each call and each walk sees one state. A [Snapshot] keeps one for several
//     calls.
//   - Walks and results are in the order of keys. The objects are not copied.
//   - Reads whose name ends in Watch also return a channel that is closed when the
//     result may have changed, or when their context ends. Until then the channel
//     is registered, whether somebody waits for it or not.
//   - An object that an index cannot accept is stored nevertheless; see
//     [IndexError].
type Store[T any] struct {
	// table is apart from the rest because Get needs nothing else, and would
	// otherwise wait for cache lines that writers on other processors change beside
	// it.
	table *table[T]
	_     [56]byte

	current atomic.Pointer[state[T]]
	// pinned counts the states that readers hold.
	pinned  atomic.Int64
	nothing version[T]
	gate    gate

	watchers watchers

	// writing is held by the writer, which alone may use the following.
	writing writeLock
	stale   stale[T]
	edit    edit[T]
	// positions are those of the sections; the content has the oldest of their
	// versions.
	positions tarn.Positions
	// building are indexes that are being filled. Writers keep them up to date,
	// readers do not see them.
	building []*indexState[T]
	// used marks the slots of cells that belong to an index.
	used []bool
}

var (
	_ tarn.ReadStore[any]     = (*Store[any])(nil)
	_ tarn.SnapshotStore[any] = (*Store[any])(nil)
	_ tarn.IndexStore[any]    = (*Store[any])(nil)
)

// New makes an empty store without a version.
func New[T any]() *Store[T] {
	s := &Store[T]{table: newTable[T](), nothing: version[T]{stamp: nothing}}
	s.current.Store(&state[T]{writing: &s.writing, indexSet: &indexSet[T]{cells: tree[*cell[T]]{paged: true}}})
	return s
}

// Of returns the store that holds a replica's copy, for what Replica does not
// offer: indexes, queries, snapshots, reads with a channel for changes. It is false
// if the replica has another store. Only the replica may write it.
func Of[T any](r *tarn.Replica[T]) (*Store[T], bool) {
	s, ok := tarn.StoreAs[interface{ self() *Store[T] }](r)
	if !ok {
		return nil, false
	}
	return s.self(), true
}

// self finds the store in a type that embeds it.
func (s *Store[T]) self() *Store[T] { return s }

// Apply makes the changes in their order and moves one section to a position. Add
// and Update both set the key, whether it exists or not; deleting an absent key
// changes nothing. A [tarn.ObjectErrors] names objects that an index could not
// accept. A change of another type makes Apply fail and do nothing.
func (s *Store[T]) Apply(changes []tarn.Change[T], at tarn.Position) error {
	for i := range changes {
		switch changes[i].Type {
		case tarn.Add, tarn.Update, tarn.Delete:
		default:
			return fmt.Errorf("change %d of %d, for %q, has type %d: a store takes only Add, Update and Delete; nothing was applied",
				i+1, len(changes), changes[i].Key, changes[i].Type)
		}
	}
	return s.write(func(e *edit[T]) tarn.Version {
		e.expect(len(changes))
		for i := range changes {
			if c := &changes[i]; c.Type == tarn.Delete {
				e.remove(c.Key)
			} else {
				e.put(c.Key, c.Object)
			}
		}
		s.positions.Move(at)
		return s.positions.Oldest()
	})
}

// Replace makes the items the whole content, at a position. If a key occurs twice,
// the last one counts. A [tarn.ObjectErrors] names objects that an index could not
// accept.
func (s *Store[T]) Replace(items []tarn.Item[T], at tarn.Position) error {
	return s.ReplaceAll(len(items), func(yield func(tarn.Key, T) bool) {
		for i := range items {
			if !yield(items[i].Key, items[i].Object) {
				return
			}
		}
	}, at)
}

// ReplaceAll is Replace by a walk over the new content, of about so many objects,
// for callers that have it in another form. The walk must not write to the store;
// if it panics, nothing is written.
func (s *Store[T]) ReplaceAll(size int, objects iter.Seq2[tarn.Key, T], at tarn.Position) error {
	return s.write(func(e *edit[T]) tarn.Version {
		done := false
		defer func() {
			if !done {
				e.abandon()
				s.writing.Unlock()
			}
		}()
		e.expect(size)
		for key, object := range objects {
			e.put(key, object)
		}
		done = true
		e.deleteUnwritten()
		s.positions.Reset(at)
		return s.positions.Oldest()
	})
}

// moveTo sets the position of the section without a name, and returns the version
// of the content after that. The caller holds writing.
func (s *Store[T]) moveTo(v tarn.Version) tarn.Version {
	s.positions.Move(tarn.At(v))
	return s.positions.Oldest()
}

// write makes an edit; change returns its version.
func (s *Store[T]) write(change func(*edit[T]) tarn.Version) error {
	s.writing.Lock()
	e := s.begin()
	err := e.publish(change(e))
	s.writing.Unlock()
	s.releaseStale()
	return err
}
