package changelog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tarnproject/tarn"
)

// Bounds returns what is kept.
func (r *Ring[T]) Bounds(context.Context) (Bounds, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	b := Bounds{First: r.horizon.seq, Last: r.last, Since: r.horizon.t, Until: r.until, States: int64(len(r.floor))}
	for _, e := range r.entries {
		if e.gap == nil {
			b.States++
		}
	}
	return b, nil
}

// entry is what readers get.
func (e *ringEntry) entry() (Entry, error) {
	if e.gap != nil {
		g := *e.gap
		return Entry{State: State{Seq: e.Seq}, Gap: &g}, nil
	}
	s := e.State
	if e.difference == nil {
		s.Object = bytes.Clone(e.whole)
		return Entry{State: s}, nil
	}
	raw, err := Apply(make([]byte, 0, len(e.whole)+64), e.whole, e.difference)
	s.Object = raw
	return Entry{State: s}, err
}

// ringChunk is how many entries are read under the lock.
const ringChunk = 256

// After walks all entries after a place.
func (r *Ring[T]) After(ctx context.Context, place Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r.mu.RLock()
		end := r.last
		r.mu.RUnlock()
		for place < end {
			all, err := r.chunk(place, end)
			if err == nil {
				err = context.Cause(ctx)
			}
			for _, e := range all {
				if err == nil && !yield(e, nil) {
					return
				}
				place = e.Seq
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if len(all) == 0 {
				return
			}
		}
		if err := r.reaches(place); err != nil {
			yield(Entry{}, err)
		}
	}
}

func (r *Ring[T]) chunk(place, end Seq) (all []Entry, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if place < r.horizon.seq {
		return nil, r.expired(place)
	}
	at, _ := slices.BinarySearchFunc(r.entries, place+1, func(e *ringEntry, seq Seq) int { return cmp.Compare(e.Seq, seq) })
	for ; at < len(r.entries) && len(all) < ringChunk && r.entries[at].Seq <= end; at++ {
		e, err := r.entries[at].entry()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (r *Ring[T]) reaches(place Seq) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if place < r.horizon.seq {
		return r.expired(place)
	}
	return nil
}

func (r *Ring[T]) expired(wanted any) error {
	return fmt.Errorf("%s: %w: entries are kept from %d on, since %s, and what follows %v was asked for", r.opts.Name, ErrExpired, r.horizon.seq, r.horizon.t.Format(time.RFC3339), wanted)
}

// Of walks the states of a key.
func (r *Ring[T]) Of(_ context.Context, key tarn.Key) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r.mu.RLock()
		var all []*ringEntry
		if e := r.floor[key]; e != nil {
			all = append(all, e)
		}
		for _, e := range r.entries {
			if e.gap != nil && len(all) > 0 || e.gap == nil && e.Key == key {
				all = append(all, e)
			}
		}
		r.yieldUnlocked(all, yield)
	}
}

// yieldUnlocked yields entries after it has released the lock.
func (r *Ring[T]) yieldUnlocked(all []*ringEntry, yield func(Entry, error) bool) {
	copies := make([]ringEntry, len(all))
	for i, e := range all {
		copies[i] = *e
	}
	r.mu.RUnlock()
	for i := range copies {
		e, err := copies[i].entry()
		if !yield(e, err) || err != nil {
			return
		}
	}
}

// AsOf walks the states that were valid at a place.
func (r *Ring[T]) AsOf(_ context.Context, place Place) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, g := range place.Gaps {
			if !yield(Entry{State: State{Seq: g.Seq}, Gap: &g}, nil) {
				return
			}
		}
		r.mu.RLock()
		if place.Seq < r.horizon.seq {
			err := r.expired(place.Seq)
			r.mu.RUnlock()
			yield(Entry{}, err)
			return
		}
		at := make(map[tarn.Key]*ringEntry, len(r.floor))
		for key, e := range r.floor {
			at[key] = e
		}
		for _, e := range r.entries {
			switch {
			case e.Seq > place.Seq || e.gap != nil:
			case e.Operation == Deleted:
				delete(at, e.Key)
			default:
				at[e.Key] = e
			}
		}
		var all []*ringEntry
		for _, key := range slices.Sorted(mapKeys(at)) {
			all = append(all, at[key])
		}
		r.yieldUnlocked(all, yield)
	}
}

// AtTime is the place of a time.
func (r *Ring[T]) AtTime(_ context.Context, t time.Time) (Place, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.until.IsZero() {
		return Place{}, fmt.Errorf("%s: %w: it has no complete state yet", r.opts.Name, ErrAhead)
	}
	t = time.UnixMilli(t.UnixMilli())
	place, found := Place{Seq: r.horizon.seq}, false
	for _, e := range r.entries {
		if e.Heard.UnixMilli() <= t.UnixMilli() {
			place.Seq, found = e.Seq, true
		}
		if e.gap != nil && e.gap.Covers(t) {
			place.Gaps = append(place.Gaps, *e.gap)
		}
	}
	if !found && t.UnixMilli() < r.horizon.t.UnixMilli() {
		return Place{}, r.expired(t.Format(time.RFC3339))
	}
	return place, nil
}

// AtVersion is the place of a version.
func (r *Ring[T]) AtVersion(_ context.Context, v tarn.Version) (Place, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	current := r.positions.Oldest()
	if c, ok := v.Compare(current); !ok {
		return Place{}, fmt.Errorf("%s: %q and %q have no order: ask for a time", r.opts.Name, v, current)
	} else if c > 0 {
		return Place{}, fmt.Errorf("%s: %w: it is at version %s, and %s was asked for", r.opts.Name, ErrAhead, current, v)
	}
	begin := Seq(-1)
	end := Seq(math.MaxInt64)
	for _, m := range r.moments {
		if m.epoch != r.epoch {
			begin = -1
			continue
		}
		if c, ok := m.version.Compare(v); ok && c <= 0 {
			begin, end = m.seq, m.seq
			if c < 0 {
				end = math.MaxInt64
			}
		} else if begin >= 0 && end == math.MaxInt64 {
			end = m.seq
		}
	}
	if begin < r.horizon.seq {
		return Place{}, r.expired("version " + string(v))
	}
	place, seq := Place{Seq: begin}, begin
	for _, e := range r.entries {
		switch {
		case e.Seq <= begin || e.Seq > end:
		case e.gap != nil:
			if e.gap.CoversVersion(v) {
				place.Gaps = append(place.Gaps, *e.gap)
			}
		case !v.OlderThan(e.Version) && e.Version != "":
			seq = e.Seq
		}
	}
	if len(place.Gaps) == 0 {
		place.Seq = seq
	}
	return place, nil
}
