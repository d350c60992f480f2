package tarn

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// A Section is one of several sources that a replica copies side by side, such
// as one namespace of many: its part of the keys is no other's.
type Section[T any] struct {
	// Name stands behind the replica's in errors and Health.
	Name   string
	Source Source[T]
	// Owns tells the section's keys. What it does not own is not seen, nor
	// taken away, by this section, and a bad object if its source tells of it.
	Owns func(Key) bool
}

// NewReplicaOf returns one replica of several sections. Each is listed, watched
// and repaired by itself; readers and subscribers see one collection.
//
//   - The replica is synced when all sections are.
//   - Its version is the oldest that any section has reached, which is why the
//     sources must share one order of versions, as all of one server do. A quiet
//     section advances by its bookmarks only: those who wait for a write of
//     their own use [Replica.WaitForKey].
//   - Health is that of the worst off; Health.Sections has each.
//   - The functions of opts may be called by several goroutines at a time.
//
// Why not one source that merges others: their versions interleave, and the
// engine would take every step back for a source that went back in time.
func NewReplicaOf[T any](sections []Section[T], store ReadStore[T], opts Options[T]) (*Replica[T], error) {
	if len(sections) == 0 || store == nil {
		return nil, fmt.Errorf("tarn: a replica needs a source and a store (%q has %d sections, store %v)", opts.Name, len(sections), store != nil)
	}
	r := &Replica[T]{opts: opts, store: store}
	for i, s := range sections {
		if s.Source == nil || s.Owns == nil {
			return nil, fmt.Errorf("tarn: section %d (%s) of %q needs a source and a function that tells its keys", i, s.Name, opts.Name)
		}
		p := part[T]{name: s.Name, owns: s.Owns, reflector: newReflector[T](s.owned(), opts)}
		p.reflector.rename(p.fullName(p.reflector.opts.Name))
		r.parts = append(r.parts, p)
	}
	r.connect()
	return r, nil
}

// ownedSource is the source of a section, as the section may see it. An object of
// another's is bad: it would be added beside the other's, and never taken away.
type ownedSource[T any] struct {
	Source[T]
	owns    func(Key) bool
	foreign error
}

func (s Section[T]) owned() ownedSource[T] {
	return ownedSource[T]{s.Source, s.Owns, fmt.Errorf("the object does not belong to the section %q", s.Name)}
}

func (o ownedSource[T]) Unwrap() Source[T] { return o.Source }

func (o ownedSource[T]) Describe(object T) (Meta, error) {
	m, err := o.Source.Describe(object)
	if err == nil && !o.owns(m.Key) {
		err = o.foreign
	}
	return m, err
}

// part is a section at work.
type part[T any] struct {
	name string
	// owns is nil if there is no other part.
	owns      func(Key) bool
	reflector *Reflector[T]
}

// fullName is what the part's reflector is called in a replica of this name.
func (p part[T]) fullName(replica string) string {
	if p.name == "" {
		return replica
	}
	return fmt.Sprintf("%s (%s)", replica, p.name)
}

// rename gives the reflector another name, before it runs.
func (r *Reflector[T]) rename(name string) {
	r.opts.Name = name
	r.monitor.update(func(h *Health) { h.Name = name })
}

// connect puts the fan-out between the parts and the store.
func (r *Replica[T]) connect() {
	r.done = make(chan struct{})
	first := r.parts[0].reflector
	if durable, ok := r.store.(Durable); ok {
		r.durable.Store(&durable)
	}
	r.fanout = newFanout(r.store, first.opts, first.versionOf, len(r.parts))
	r.fanout.noteReached = func(section int, v Version) {
		r.parts[section].reflector.monitor.update(func(h *Health) { h.Version = v })
	}
	r.synced, r.ended = first.monitor.synced, first.monitor.ended
	if len(r.parts) > 1 {
		r.synced, r.ended = r.fanout.allSynced, make(chan struct{})
	}
	if len(r.parts) == 1 {
		first.fillFrom(r.store, func(store Filler[T], v Version) error { return r.fanout.filled(store, v, first.sound()) })
	}
	holder, _ := storeAs[Holder](r.store)
	for i, p := range r.parts {
		p.reflector.reader, p.reflector.holder = r.store, holder
		if p.owns != nil {
			p.reflector.reader = ownedReader[T]{r.store, p.owns, r.fanout, i}
		}
		p.reflector.apply = func(changes []Change[T], v Version) error { return r.fanout.apply(i, changes, v, p.reflector.sound()) }
		p.reflector.resync = func() error { return r.fanout.resync(p.owns) }
		p.reflector.wantsSync = r.fanout.wantsSync
		p.reflector.onSynced = r.fanout.markSynced
	}
}

// ownedReader shows a section its own part of the store.
type ownedReader[T any] struct {
	store   Reader[T]
	owns    func(Key) bool
	fanout  *fanout[T]
	section int
}

func (o ownedReader[T]) Get(key Key) (object T, ok bool) {
	if !o.owns(key) {
		return object, false
	}
	return o.store.Get(key)
}

func (o ownedReader[T]) All() iter.Seq2[Key, T] {
	return func(yield func(Key, T) bool) {
		for key, object := range o.store.All() {
			if o.owns(key) && !yield(key, object) {
				return
			}
		}
	}
}

func (o ownedReader[T]) Len() int {
	n := 0
	for range o.All() {
		n++
	}
	return n
}

func (o ownedReader[T]) Version() Version { return o.fanout.position(o.section) }

// together is the Health of several sections as one: what is said holds for all
// of them.
func together(name string, sections []Health) Health {
	all := Health{Name: name, Synced: true, Lists: map[string]int64{}, Sections: sections}
	all.State, all.Version = sections[0].State, sections[0].Version
	all.WatchSince, all.WatchAge = sections[0].WatchSince, sections[0].WatchAge
	var words []time.Time
	for _, h := range sections {
		if badness(h.State) > badness(all.State) {
			all.State = h.State
		}
		if c, ok := h.Version.Compare(all.Version); !ok {
			all.Version = ""
		} else if c < 0 {
			all.Version = h.Version
		}
		all.Synced = all.Synced && h.Synced
		all.FromDisk = all.FromDisk || h.FromDisk
		words = append(words, h.LastWord)
		all.Age = max(all.Age, h.Age)
		if h.Err != nil && (all.Err == nil || h.ErrSince.Before(all.ErrSince)) {
			all.Err, all.ErrSince = h.Err, h.ErrSince
		}
		if all.WatchSince.IsZero() || h.WatchSince.IsZero() {
			all.WatchSince, all.WatchAge = time.Time{}, 0
		} else if h.WatchSince.After(all.WatchSince) {
			all.WatchSince, all.WatchAge = h.WatchSince, h.WatchAge
		}
		all.Failures += h.Failures
		all.AllFailures += h.AllFailures
		all.Bad = append(all.Bad, h.Bad...)
		all.BadCount += h.BadCount
		all.Damage.Found += h.Damage.Found
		all.Damage.Repaired += h.Damage.Repaired
		all.Damage.Waiting += h.Damage.Waiting
		all.Damage.Recent = append(all.Damage.Recent, h.Damage.Recent...)
		for cause, n := range h.Lists {
			all.Lists[cause] += n
		}
		all.Watches += h.Watches
		all.Events += h.Events
		all.Rewinds += h.Rewinds
		all.WatchListGivenUp = all.WatchListGivenUp || h.WatchListGivenUp
	}
	all.LastWord = slices.MinFunc(words, time.Time.Compare)
	all.Bad = all.Bad[:min(len(all.Bad), maxBadListed)]
	slices.SortStableFunc(all.Damage.Recent, func(a, b Damage) int { return a.Since.Compare(b.Since) })
	all.Damage.Recent = all.Damage.Recent[max(0, len(all.Damage.Recent)-maxDamageListed):]
	return all
}

// badness orders states by how much they keep a replica from following: a state
// that some sections are in is told if no other is worse off.
func badness(s State) int {
	return slices.Index([]State{Stopped, Watching, Idle, Listing, Waiting}, s)
}
