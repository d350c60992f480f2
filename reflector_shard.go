package tarn

import (
	"context"
	"maps"
	"slices"
)

// shardState is what a reflector knows of the shard that its source reads. All is empty if
// the source reads its whole collection.
type shardState struct {
	reader ShardReader
	// held reports whether an object belongs to the shard that the store has, and reading
	// whether it belongs to the one of the state that is being read; nil for neither.
	held, reading func(Meta) bool
	// within says that all objects of the shard that is being read are in the one that the
	// store has.
	within bool
	// uids has those of the objects whose transform drops the uid, by their keys in the store.
	// Without them an object that moved could not be distinguished from one that is gone.
	uids map[Key]string
}

// shardReaderOf finds the reader in a chain of wrapped sources; nil if there is none.
func shardReaderOf[T any](source Source[T]) ShardReader {
	for source != nil {
		if s, ok := source.(Sharded); ok {
			return s.Shard()
		}
		wrapper, ok := source.(interface{ Unwrap() Source[T] })
		if !ok {
			return nil
		}
		source = wrapper.Unwrap()
	}
	return nil
}

// openShard has the reflector notified of changes until the returned function is called.
func (r *Reflector[T]) openShard() (closed func()) {
	if r.shard.reader == nil {
		return func() {}
	}
	r.shard.reader.Open(r.recheck.askShard)
	return r.shard.reader.Close
}

// begin is called before a whole state is read.
func (s *shardState) begin() {
	if s.reader != nil {
		s.reading, s.within = s.reader.Begin()
	}
}

// taken is called when the store has that state.
func (s *shardState) taken() {
	if s.reader != nil {
		s.held = s.reading
		s.reader.Taken()
	}
}

// movedIn reports whether an object that the store lacks is in the state because the shard
// has changed.
func (s *shardState) movedIn(m Meta) bool { return s.held != nil && !s.held(m) }

// movedOut reports whether an object of the store is missing in the state because the
// shard has changed.
func (r *Reflector[T]) movedOut(key Key, held T) bool {
	if r.shard.held == nil || r.shard.reading == nil {
		return false
	}
	m, err := r.describe(held)
	if m.UID == "" {
		m.UID = r.shard.uids[key]
	}
	return err == nil && !r.shard.reading(m)
}

// note keeps the uid of an object whose transform drops it.
func (s *shardState) note(came, kept Meta) {
	if s.reading == nil || kept.UID != "" || came.UID == "" {
		return
	}
	if s.uids == nil {
		s.uids = map[Key]string{}
	}
	s.uids[kept.Key] = came.UID
}

// keep forgets the uids of objects that are not present.
func (s *shardState) keep(present func(stored Key) bool) {
	maps.DeleteFunc(s.uids, func(stored Key, _ string) bool { return !present(stored) })
}

// narrow makes a pass that reads nothing, if that is enough for another shard: its objects
// are in the store, and are followed from the version reached. It returns nil if the state
// has to be read.
//
// Why not always read: when a member joins, the others give up a part each, and every one of
// them would list the collection for nothing.
func (r *Reflector[T]) narrow() *Pass[T] {
	s := &r.shard
	if !r.next.forShard || !s.within || s.held == nil || r.reader == nil || !r.numbered() || r.opts.Transform != nil || !r.monitor.bad.empty() {
		return nil
	}
	p := &Pass[T]{r: r, version: r.version, narrowed: []Change[T]{}}
	for key, held := range r.reader.All() {
		m, err := r.describe(held)
		if err != nil || m.UID == "" {
			return nil
		}
		if !s.reading(m) {
			p.narrowed = append(p.narrowed, movedAway(key, held, m.Version))
		}
	}
	return p
}

func movedAway[T any](key Key, held T, v Version) Change[T] {
	return Change[T]{Type: Delete, Moved: true, Key: key, Old: held, Object: held, Version: v}
}

// commitNarrowed removes what does not belong to the shard from the store.
func (p *Pass[T]) commitNarrowed(ctx context.Context) error {
	r := p.r
	if err := r.rejectSome(ctx, r.apply(p.narrowed, r.at(r.version))); err != nil {
		return r.explain("the store did not let go of another shard at", r.version, err)
	}
	p.narrowed = nil
	r.next = nextRead{cause: causeWatchEnded}
	r.shard.taken()
	return nil
}

func (s *shardState) health() *ShardHealth {
	if s.reader == nil {
		return nil
	}
	h := s.reader.Health()
	return &h
}

// withoutMoved are the changes that subscribers see which do not ask for moved objects.
func withoutMoved[T any](changes []Change[T]) []Change[T] {
	moved := func(c Change[T]) bool { return c.Moved }
	if !slices.ContainsFunc(changes, moved) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), moved)
}
