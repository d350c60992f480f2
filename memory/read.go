package memory

import (
	"context"
	"iter"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory/query"
)

// Get returns the object under key.
func (s *Store[T]) Get(key tarn.Key) (object T, ok bool) {
	// Most versions have nothing before them, and are right for any newest state.
	// Not reading that state saves waiting for a cache line that a writer on
	// another processor has just changed.
	if c := s.table.find(key); c == nil {
		return object, false
	} else if v := c.head.Load(); v.before.Load() == nil {
		return v.object, !v.deleted()
	}
	for {
		st := s.current.Load()
		c := s.table.find(key)
		if c == nil {
			return object, false
		}
		v := c.head.Load()
		if v.seq() > st.seq {
			// A write is running, or has just ended. In the second case the version
			// for st may have been released, and does not matter.
			v = c.at(st.seq)
			if s.current.Load() != st {
				continue
			}
			if v == nil {
				return object, false
			}
		}
		return v.object, !v.deleted()
	}
}

// Held is Get for a [tarn.Holder].
func (s *Store[T]) Held(key tarn.Key) (object any, ok bool) { return s.Get(key) }

// Len counts the objects.
func (s *Store[T]) Len() int { return s.current.Load().cells.n }

// Version is the version of the content, empty until one was written.
func (s *Store[T]) Version() tarn.Version { return s.current.Load().version }

// All walks the state that is newest when the walk begins, in the order of keys.
// The loop may take its time and may write.
func (s *Store[T]) All() iter.Seq2[tarn.Key, T] { return s.within(span{}) }

// Prefix walks the objects whose key begins with prefix. See All.
func (s *Store[T]) Prefix(prefix tarn.Key) iter.Seq2[tarn.Key, T] {
	return s.within(query.PrefixSpan(string(prefix)))
}

// Range walks the objects from key from up to but not including key to; without
// an end if to is empty. See All.
func (s *Store[T]) Range(from, to tarn.Key) iter.Seq2[tarn.Key, T] {
	return s.within(span{From: string(from), To: string(to)})
}

func (s *Store[T]) within(r span) iter.Seq2[tarn.Key, T] {
	return func(yield func(tarn.Key, T) bool) {
		st := s.pin()
		defer s.unpin(st)
		st.walk(r, yield)
	}
}

// GetWatch is Get with a channel that is closed when the object may have changed,
// and at the latest when ctx ends. With a context that never ends, the store keeps
// the channel until the object changes.
func (s *Store[T]) GetWatch(ctx context.Context, key tarn.Key) (object T, ok bool, changed <-chan struct{}) {
	changed = s.watchers.key(ctx, string(key))
	object, ok = s.Get(key)
	return object, ok, changed
}

// LenWatch is Len with a channel that is closed when objects are added or deleted,
// or ctx ends.
func (s *Store[T]) LenWatch(ctx context.Context) (n int, changed <-chan struct{}) {
	changed = s.watchers.length(ctx)
	return s.Len(), changed
}

// AllWatch is All with a channel that is closed when any object may have changed
// since the call, or ctx ends. The walk begins with the state of the call or a
// later one.
func (s *Store[T]) AllWatch(ctx context.Context) (all iter.Seq2[tarn.Key, T], changed <-chan struct{}) {
	changed = s.watchers.within(ctx, span{})
	return s.All(), changed
}

// PrefixWatch is Prefix with a channel, see AllWatch.
func (s *Store[T]) PrefixWatch(ctx context.Context, prefix tarn.Key) (found iter.Seq2[tarn.Key, T], changed <-chan struct{}) {
	changed = s.watchers.within(ctx, query.PrefixSpan(string(prefix)))
	return s.Prefix(prefix), changed
}

// RangeWatch is Range with a channel, see AllWatch.
func (s *Store[T]) RangeWatch(ctx context.Context, from, to tarn.Key) (found iter.Seq2[tarn.Key, T], changed <-chan struct{}) {
	changed = s.watchers.within(ctx, span{From: string(from), To: string(to)})
	return s.Range(from, to), changed
}

// Watching counts the open channels of reads whose name ends in Watch. A count that
// only grows is a sign of contexts that never end.
func (s *Store[T]) Watching() int {
	n := s.watchers.count.Load()
	for _, x := range s.current.Load().indexes {
		n += x.watchers.count.Load()
	}
	return int(n)
}

// Keys returns the key of every object, in order.
func (s *Store[T]) Keys() []tarn.Key {
	st := s.pin()
	defer s.unpin(st)
	keys := make([]tarn.Key, 0, st.cells.n)
	st.cells.from("", func(cells []*cell[T]) bool {
		for _, c := range cells {
			keys = append(keys, c.key)
		}
		return true
	})
	return keys
}

// List returns every object, in the order of keys.
func (s *Store[T]) List() []T {
	st := s.pin()
	defer s.unpin(st)
	list := make([]T, 0, st.cells.n)
	st.leaves("", func(leaf *node[*cell[T]], _ int) bool {
		if entries := st.entries(leaf); entries != nil {
			for i := range entries {
				list = append(list, entries[i].object)
			}
		} else {
			list = st.objects(list, leaf.items)
		}
		return true
	})
	return list
}

// walk yields the objects of a span of keys. The state must be pinned.
func (st *state[T]) walk(r span, yield func(tarn.Key, T) bool) {
	st.leaves(r.From, func(leaf *node[*cell[T]], first int) bool {
		end, more := len(leaf.items), true
		if r.To != "" && string(leaf.items[end-1].key) >= r.To {
			end, _ = find(leaf.items, r.To)
			end, more = max(first, end), false
		}
		entries := st.entries(leaf)
		if entries == nil {
			return st.yieldObjects(leaf.items[first:end], yield) && more
		}
		for i := first; i < end; i++ {
			if !yield(entries[i].key, entries[i].object) {
				return false
			}
		}
		return more
	})
}

// yieldObjects yields the objects of cells. It reads them in two rounds: first the
// versions of many, then their content. In the first the processor can load several
// at once, which helps where they are scattered.
func (st *state[T]) yieldObjects(cells []*cell[T], yield func(tarn.Key, T) bool) bool {
	var versions [maxNode]*version[T]
	for len(cells) > 0 {
		n := min(len(cells), maxNode)
		for i, c := range cells[:n] {
			versions[i] = c.at(st.seq)
		}
		for i, c := range cells[:n] {
			if v := versions[i]; v != nil && !yield(c.key, v.object) {
				return false
			}
		}
		cells = cells[n:]
	}
	return true
}

// objects appends the objects of cells.
func (st *state[T]) objects(list []T, cells []*cell[T]) []T {
	for _, c := range cells {
		if v := c.at(st.seq); v != nil {
			list = append(list, v.object)
		}
	}
	return list
}
