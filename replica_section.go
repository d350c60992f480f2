package tarn

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// A Section is one of several sources of a replica, such as one namespace of many.
// Sections do not share keys.
type Section[T any] struct {
	// Name is unique among the sections. It follows the replica's name in errors and
	// Health.
	Name   string
	Source Source[T]
	// Prefix is the prefix of the section's keys, and of no other section's, such as
	// "kube-system/". The section neither reads nor deletes other keys; an object of its
	// source with another key is bad.
	//
	// Why not a function: then a list of one namespace would have to be compared with all
	// objects of all namespaces.
	Prefix Key
	// Independent says that the source is another server than those of the other
	// sections, such as one cluster of many. Either all sections are independent or none.
	//
	//   - Versions of independent sections have no common order: the replica has no version
	//     of its own. Use [Replica.WaitForKey] instead of [Replica.WaitFor].
	//   - Nobody waits for a source that is unreachable: the replica counts as synced
	//     when each section is synced, or has failed once. Health.Sections says which is
	//     which, and Health.Synced still means all of them.
	Independent bool
}

// NewReplicaOf returns one replica of several sections. Each is listed, watched and
// repaired separately; readers and subscribers see one collection.
//
//   - The replica is synced when all sections are.
//   - Its version is the oldest of its sections'. The sources must therefore share one
//     order of versions, as those of one server do, unless the sections are
//     [Section.Independent]. A quiet section advances only by its bookmarks: to wait for a
//     write, use [Replica.WaitForKey].
//   - Health is that of the section in the worst state; Health.Sections has each.
//   - The functions of opts may be called by several goroutines at a time.
//   - Sections can be added and removed later: see [Replica.AddSection].
//
// Why not one source that merges others: their versions interleave, and every step
// back would look like a source that went back in time.
func NewReplicaOf[T any](sections []Section[T], store ReadStore[T], opts Options[T]) (*Replica[T], error) {
	if len(sections) == 0 || store == nil {
		return nil, fmt.Errorf("tarn: a replica needs a source and a store (%q has %d sections, store %v)", opts.Name, len(sections), store != nil)
	}
	r := &Replica[T]{opts: opts, store: store}
	if err := checkSections(sections); err != nil {
		return nil, fmt.Errorf("tarn: %q: %w", opts.Name, err)
	}
	var all []*section[T]
	for _, s := range sections {
		all = append(all, r.newSection(s))
	}
	r.connect(all)
	return r, nil
}

// newSection makes a section, which does not run yet.
func (r *Replica[T]) newSection(s Section[T]) *section[T] {
	p := &section[T]{name: s.Name, prefix: s.Prefix, independent: s.Independent, reflector: newReflector[T](s.owned(), r.opts)}
	p.reflector.rename(p.fullName(p.reflector.opts.Name))
	return p
}

// checkSections checks that each section has a source and a unique name, and that their
// prefixes do not overlap.
func checkSections[T any](sections []Section[T]) error {
	sorted := slices.SortedFunc(slices.Values(sections), func(a, b Section[T]) int { return cmp.Compare(a.Prefix, b.Prefix) })
	names := map[string]bool{}
	for i, s := range sorted {
		switch {
		case s.Source == nil:
			return fmt.Errorf("section %q has no source", s.Name)
		case names[s.Name]:
			return fmt.Errorf("two sections are called %q; give each a name of its own", s.Name)
		case s.Independent != sections[0].Independent:
			return fmt.Errorf("section %q is independent, or not, and another one is the opposite: either all are or none", s.Name)
		case i > 0 && strings.HasPrefix(string(s.Prefix), string(sorted[i-1].Prefix)):
			return fmt.Errorf("the keys of section %q, which begin with %q, are also those of section %q (%q)", s.Name, s.Prefix, sorted[i-1].Name, sorted[i-1].Prefix)
		}
		names[s.Name] = true
	}
	return nil
}

// ownedSource is the source of a section. An object outside of the section is bad: the
// section would add it and never delete it.
type ownedSource[T any] struct {
	Source[T]
	prefix  Key
	foreign error
}

func (s Section[T]) owned() ownedSource[T] {
	return ownedSource[T]{s.Source, s.Prefix, fmt.Errorf("the object does not belong to the section %q", s.Name)}
}

func (o ownedSource[T]) Unwrap() Source[T] { return o.Source }

func (o ownedSource[T]) StreamList(ctx context.Context, q ListQuery, take func([]T)) (Page[T], error) {
	return StreamList(ctx, o.Source, q, take)
}

func (o ownedSource[T]) Describe(object T) (Meta, error) {
	m, err := o.Source.Describe(object)
	if err == nil && !m.Key.HasPrefix(o.prefix) {
		err = o.foreign
	}
	return m, err
}

// section is a running section. A replica of a single source has one without a name,
// which owns all keys.
type section[T any] struct {
	name        string
	prefix      Key
	independent bool
	reflector   *Reflector[T]
	state       *sectionState
	// stop ends the section alone, and returns when it has ended; nil if it does not run.
	stop func()
	// removed is closed when the section has been removed with its objects; nil before.
	removed chan struct{}
}

// fullName is the name of the section's reflector in a replica of this name.
func (s *section[T]) fullName(replica string) string {
	if s.name == "" {
		return replica
	}
	return fmt.Sprintf("%s (%s)", replica, s.name)
}

// rename changes the name of a reflector that does not run yet.
func (r *Reflector[T]) rename(name string) {
	r.opts.Name = name
	r.monitor.update(func(h *Health) { h.Name = name })
}

// connect puts the fan-out between the sections and the store.
func (r *Replica[T]) connect(sections []*section[T]) {
	r.done = make(chan struct{})
	r.sections = sectionSet[T]{
		all: sections, independent: sections[0].independent, ready: make(chan struct{}), removed: emptyCounts(),
		single: len(sections) == 1 && !sections[0].independent,
	}
	first := sections[0].reflector
	r.durable = durableOf(r.store)
	r.fanout = newFanout(r.store, first.opts, first, sections)
	r.synced, r.ended = first.monitor.synced, first.monitor.ended
	if r.sections.single {
		first.fillFrom(r.store, r.fanout.filled)
	} else {
		r.synced, r.ended = r.fanout.allSynced, make(chan struct{})
	}
	for _, p := range sections {
		r.connectSection(p)
	}
}

// connectSection lets a section read from the store and write to the fan-out.
func (r *Replica[T]) connectSection(p *section[T]) {
	reflector := p.reflector
	reflector.reader = r.store
	reflector.holder, _ = As[Holder](r.store)
	reflector.outside, _ = As[outsideWrites[T]](r.store)
	if p.prefix != "" {
		reflector.reader = ownedReader[T]{r.store, p.prefix, r.fanout, p.state}
	}
	reflector.apply = func(changes []Change[T], at Position) error { return r.fanout.apply(p.state, changes, at) }
	reflector.onMissed = func(cause GapCause) { r.fanout.noteMissed(p.state, cause) }
	reflector.resync = func() error { return r.fanout.resync(p.prefix) }
	reflector.wantsSync = r.fanout.wantsSync
	reflector.onSynced = func() { r.fanout.markSynced(p.state) }
	if p.independent {
		reflector.onFailed = func() { r.fanout.noteFailed(p.state) }
	}
}

// ownedReader reads the section's part of the store.
type ownedReader[T any] struct {
	store   ReadStore[T]
	prefix  Key
	fanout  *fanout[T]
	section *sectionState
}

func (o ownedReader[T]) Get(key Key) (object T, ok bool) {
	if !key.HasPrefix(o.prefix) {
		return object, false
	}
	return o.store.Get(key)
}

func (o ownedReader[T]) All() iter.Seq2[Key, T] { return withPrefix(o.store, o.prefix) }

// withPrefix walks the objects whose keys have a prefix, and skips the others without a
// walk if the store is ordered by key.
func withPrefix[T any](store ReadStore[T], prefix Key) iter.Seq2[Key, T] {
	if prefix == "" {
		return store.All()
	}
	if ordered, ok := As[PrefixReader[T]](store); ok {
		return ordered.Prefix(prefix)
	}
	return func(yield func(Key, T) bool) {
		for key, object := range store.All() {
			if key.HasPrefix(prefix) && !yield(key, object) {
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

// mergeHealth combines the Health of several sections into one that holds for all.
func mergeHealth(name string, sections []Health) Health {
	all := Health{Name: name, Synced: true, Lists: map[string]int64{}, Sections: sections}
	if len(sections) == 0 {
		return all // nothing is missing of nothing
	}
	all.State, all.Version = sections[0].State, sections[0].Version
	all.WatchSince, all.WatchAge = sections[0].WatchSince, sections[0].WatchAge
	var contacts []time.Time
	for _, h := range sections {
		if severity(h.State) > severity(all.State) {
			all.State = h.State
		}
		if c, ok := h.Version.Compare(all.Version); !ok {
			all.Version = ""
		} else if c < 0 {
			all.Version = h.Version
		}
		all.Synced = all.Synced && h.Synced
		all.FromDisk = all.FromDisk || h.FromDisk
		contacts = append(contacts, h.LastContact)
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
		all.Bad = append(all.Bad, h.Bad...)
		all.BadCount += h.BadCount
		all.Damage.Waiting += h.Damage.Waiting
		all.Damage.Recent = append(all.Damage.Recent, h.Damage.Recent...)
		all.WatchListGivenUp = all.WatchListGivenUp || h.WatchListGivenUp
		all.Shard = mergeShards(all.Shard, h.Shard)
		all.count(h)
	}
	all.LastContact = slices.MinFunc(contacts, time.Time.Compare)
	all.Bad = all.Bad[:min(len(all.Bad), maxBadListed)]
	slices.SortStableFunc(all.Damage.Recent, func(a, b Damage) int { return a.Since.Compare(b.Since) })
	all.Damage.Recent = all.Damage.Recent[max(0, len(all.Damage.Recent)-maxDamageListed):]
	return all
}

// emptyCounts is a Health to which counts can be added.
func emptyCounts() Health { return Health{Lists: map[string]int64{}, Shard: &ShardHealth{}} }

// count adds the counts of another Health.
func (h *Health) count(other Health) {
	for cause, n := range other.Lists {
		h.Lists[cause] += n
	}
	h.Watches += other.Watches
	h.Events += other.Events
	h.Rewinds += other.Rewinds
	h.AllFailures += other.AllFailures
	h.Damage.Found += other.Damage.Found
	h.Damage.Repaired += other.Damage.Repaired
	if h.Shard != nil && other.Shard != nil {
		h.Shard.Dropped += other.Shard.Dropped
	}
}

// mergeShards is the shard of several sections, which have the same one. It does not add up the
// dropped objects, which are counts.
func mergeShards(all, next *ShardHealth) *ShardHealth {
	switch {
	case next == nil:
		return all
	case all == nil:
		return &ShardHealth{Name: next.Name, Share: next.Share, ByServer: next.ByServer}
	}
	all.ByServer = all.ByServer && next.ByServer
	return all
}

// severity orders states by how far they are from following: a replica has the most
// severe state of its sections.
func severity(s State) int {
	return slices.Index([]State{StateStopped, StateWatching, StateIdle, StateListing, StateWaiting}, s)
}
