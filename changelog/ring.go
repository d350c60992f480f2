package changelog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// Ring is a log in memory, bounded by bytes, for a copy without a disk. It is a
// [tarn.Sink] that holds nothing beyond the process, and a [Log].
//
// States are differences against a whole state of the same object, as on disk. When the
// bound is reached, the oldest entries go; the state that was valid at the horizon stays
// for each object that lived there, also if these alone are larger than the bound.
type Ring[T any] struct {
	opts RingOptions[T]

	mu sync.RWMutex
	// entries are in order.
	entries []*ringEntry
	// floor has, by key, the states that were valid at the horizon, alive those that
	// are valid now.
	floor, alive map[tarn.Key]*ringEntry
	horizon      ringBounds
	last         Seq
	bytes        int64
	// until is the time of the last contact with the source, positions what was
	// reached. epoch counts rewinds, moments are the ends of commits.
	until     time.Time
	positions tarn.Positions
	epoch     string
	moments   []ringMoment
	encode    []byte
}

type ringBounds struct {
	seq Seq
	t   time.Time
}

// ringMoment is the end of a commit: what version the copy had after an entry.
type ringMoment struct {
	seq     Seq
	version tarn.Version
	epoch   string
}

// RingOptions configure a [Ring].
type RingOptions[T any] struct {
	// Bytes bounds the log; 64 MiB if 0.
	Bytes int64
	// Name is that of the sink; "log" if empty.
	Name string
	// Append adds an object's bytes to buf, UID distinguishes objects of one key; UID
	// may be nil.
	Append func(buf []byte, object T) ([]byte, error)
	UID    func(object T) string
}

// ringEntry is a state or a gap. It is not changed once it is in the log, except for its end.
type ringEntry struct {
	State
	gap *Gap
	// whole are the bytes of a base, difference what leads from there to this state; nil
	// if they are the same.
	whole      []byte
	difference []byte
	// owner says that the base is counted with this entry.
	owner bool
}

func (e *ringEntry) size() int64 {
	n := 200 + len(e.difference) + len(e.Key)
	if e.owner {
		n += len(e.whole)
	}
	return int64(n)
}

var _ tarn.Sink[any] = (*Ring[any])(nil)
var _ Log = (*Ring[any])(nil)

// NewRing returns an empty log.
func NewRing[T any](opts RingOptions[T]) (*Ring[T], error) {
	if opts.Append == nil || opts.Bytes < 0 {
		return nil, fmt.Errorf("changelog: a ring needs a function that encodes objects, and a bound that is not negative")
	}
	opts.Bytes, opts.Name = cmp.Or(opts.Bytes, 64<<20), cmp.Or(opts.Name, "log")
	return &Ring[T]{opts: opts, floor: map[tarn.Key]*ringEntry{}, alive: map[tarn.Key]*ringEntry{}}, nil
}

// Policy asks for every state at once.
func (r *Ring[T]) Policy() tarn.SinkPolicy[T] {
	return tarn.SinkPolicy[T]{Name: r.opts.Name, EveryState: true, MaxBytes: 64 << 20, SizeOf: func(tarn.Change[T]) int { return 4 << 10 }}
}

// Open says that nothing is held.
func (r *Ring[T]) Open(context.Context, func() error) (tarn.Kept, error) { return tarn.Kept{}, nil }

// Close does nothing: the log can be read after its copy has ended.
func (r *Ring[T]) Close() {}

// Commit appends a batch.
func (r *Ring[T]) Commit(_ context.Context, b tarn.Batch[T]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.last == 0 && r.until.IsZero()
	gaps, since := slices.Clone(b.Gaps), r.until
	var at tarn.Positions
	for _, p := range b.Positions {
		at.Move(p)
	}
	if b.Whole && !first && len(gaps) == 0 && at.Oldest() != r.positions.Oldest() {
		gaps = []tarn.Gap{{From: r.positions.Oldest(), To: at.Oldest(), Cause: tarn.GapReconciled}}
	}
	var bad tarn.ObjectErrors
	seen := map[tarn.Key]bool{}
	for _, c := range b.Changes {
		if c.Heard.IsZero() {
			c.Heard = b.LastContact
		}
		for len(gaps) > 0 && (c.Missed || c.Rewound || gaps[0].From.OlderThan(c.Version)) {
			r.gap(gaps[0], since, c.Heard)
			gaps = gaps[1:]
		}
		since, seen[c.Key] = c.Heard, c.Type != tarn.Delete
		if err := r.change(c); err != nil {
			bad = append(bad, tarn.BadObject{Key: c.Key, Version: c.Version, Err: err})
		}
	}
	for _, g := range gaps {
		r.gap(g, since, b.LastContact)
	}
	if b.Whole {
		for _, key := range slices.Sorted(mapKeys(r.alive)) {
			if !seen[key] {
				r.end(tarn.Change[T]{Key: key, Heard: b.LastContact, Missed: true})
			}
		}
	}
	r.until, r.positions, r.epoch = b.LastContact, at, epochOf(b.Positions)
	r.note(ringMoment{r.last, at.Oldest(), r.epoch})
	if first {
		r.begin()
	}
	r.trim()
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// note adds the end of a commit. Of those at one place only the first and the last are kept:
// all versions between them are at this place too, and a quiet source has many.
func (r *Ring[T]) note(m ringMoment) {
	same := func(back int) bool {
		i := len(r.moments) - back
		return i >= 0 && r.moments[i].seq == m.seq && r.moments[i].epoch == m.epoch
	}
	if same(1) && same(2) {
		r.moments = r.moments[:len(r.moments)-1]
	}
	r.moments = append(r.moments, m)
}

func mapKeys[V any](m map[tarn.Key]V) iter.Seq[tarn.Key] {
	return func(yield func(tarn.Key) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func epochOf(positions []tarn.Position) string {
	var all []string
	for _, p := range positions {
		all = append(all, p.Epoch+"\x00")
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "")
}

func (r *Ring[T]) gap(g tarn.Gap, since, until time.Time) {
	if since.IsZero() || since.After(until) {
		since = until
	}
	r.append(&ringEntry{gap: &Gap{Seq: r.last + 1, Gap: g, Since: since, Until: until}, State: State{Seq: r.last + 1, Heard: until}})
}

func (r *Ring[T]) append(e *ringEntry) {
	r.last = e.Seq
	r.entries = append(r.entries, e)
	r.bytes += e.size()
}

// change appends a state.
func (r *Ring[T]) change(c tarn.Change[T]) (err error) {
	if c.Type == tarn.Delete {
		r.end(c)
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the codec panicked: %v", v)
		}
		if err != nil {
			r.gap(tarn.Gap{From: r.positions.Oldest(), To: c.Version, Cause: GapUnwritten}, c.Heard, c.Heard)
			c.Missed = true
			r.end(c)
		}
	}()
	if r.encode, err = r.opts.Append(r.encode[:0], c.Object); err != nil {
		return err
	}
	uid := ""
	if r.opts.UID != nil {
		uid = r.opts.UID(c.Object)
	}
	before := r.alive[c.Key]
	if before != nil && before.UID != uid && uid != "" && before.UID != "" {
		r.end(tarn.Change[T]{Key: c.Key, Heard: c.Heard, Missed: true})
		before = nil
	}
	e := &ringEntry{State: State{Key: c.Key, UID: uid, Version: c.Version, Operation: Added, Heard: c.Heard}}
	if before == nil {
		e.whole, e.owner = bytes.Clone(r.encode), true
	} else {
		e.Operation = Modified
		e.against(before, r.encode)
		if !e.owner && before.Version == c.Version && bytes.Equal(before.difference, e.difference) {
			return nil
		}
		before.Until = c.Heard
	}
	e.Seq = r.last + 1
	r.alive[c.Key] = e
	r.append(e)
	return nil
}

// against stores raw as a difference against the base of another state, or as a new base
// if the difference is large.
func (e *ringEntry) against(before *ringEntry, raw []byte) {
	e.whole = before.whole
	if bytes.Equal(raw, e.whole) {
		return
	}
	if e.difference = AppendDifference(nil, e.whole, raw); len(e.difference) > len(raw)/4+64 {
		e.whole, e.difference, e.owner = bytes.Clone(raw), nil, true
	}
}

// end appends the end of an object.
func (r *Ring[T]) end(c tarn.Change[T]) {
	before := r.alive[c.Key]
	if before == nil {
		return
	}
	e := &ringEntry{State: State{Seq: r.last + 1, Key: c.Key, UID: before.UID, Version: c.Version, Operation: Deleted, Heard: c.Heard, Until: c.Heard}}
	e.whole, e.difference = before.whole, before.difference
	if !c.Missed {
		if raw, err := r.final(c.Object); err == nil {
			e.difference = nil
			e.against(before, raw)
		}
	}
	before.Until = c.Heard
	delete(r.alive, c.Key)
	r.append(e)
}

// final encodes the last state of an object, which may be missing.
func (r *Ring[T]) final(object T) (raw []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the codec panicked: %v", v)
		}
	}()
	return r.opts.Append(nil, object)
}

// begin makes the first whole state the horizon.
func (r *Ring[T]) begin() {
	r.pass(len(r.entries))
	r.horizon.t = r.until
}

// trim drops the oldest entries beyond the bound.
func (r *Ring[T]) trim() {
	n, bytes := 0, r.bytes
	for n < len(r.entries) && bytes > r.opts.Bytes {
		bytes -= r.entries[n].size()
		n++
	}
	if n > 0 {
		r.pass(n)
	}
}

// pass moves the horizon past n entries.
func (r *Ring[T]) pass(n int) {
	for _, e := range r.entries[:n] {
		r.horizon.seq = e.Seq
		if e.Heard.After(r.horizon.t) {
			r.horizon.t = e.Heard
		}
		r.bytes -= e.size()
		if e.gap != nil {
			continue
		}
		if before := r.floor[e.Key]; before != nil {
			r.bytes -= before.size()
			delete(r.floor, e.Key)
		}
		if e.Operation != Deleted {
			e.owner = true // nothing else counts its base now
			r.floor[e.Key] = e
			r.bytes += e.size()
		}
	}
	r.entries = dropFirst(r.entries, n)
	at, _ := slices.BinarySearchFunc(r.moments, r.horizon.seq, func(m ringMoment, seq Seq) int { return cmp.Compare(m.seq, seq) })
	r.moments = dropFirst(r.moments, min(at, max(len(r.moments)-1, 0)))
}

// dropFirst removes the first n elements, and does not keep alive what they refer to. The others
// are copied only if they are fewer, so that a full ring costs as much for each entry as one that
// is not full; appending makes new memory when that of the dropped ones is used up.
func dropFirst[E any](all []E, n int) []E {
	clear(all[:n])
	if rest := all[n:]; n <= len(rest) {
		return rest
	}
	return slices.Clone(all[n:])
}
