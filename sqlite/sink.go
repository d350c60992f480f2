package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarnproject/tarn"
)

// Sink is a collection on disk that follows a copy in memory; see [tarn.Sink]. It is a
// [tarn.Restorer]: a replica with this sink begins with the content that the previous
// process wrote.
//
// The last state of each object is written, in groups, and with a history all states
// before it too; see [Options]. After a crash
// the source sends the missing changes again, from the version on disk.
//
// Why not write first, as a database does with its log: readers would wait for the disk,
// and a full disk would stop the copy.
type Sink[T any] struct {
	store *Store[T]
	// moves says that the batch which is committed leads to other positions than the sink
	// had before.
	moves bool
}

// NewSink opens a collection of db as [NewStore] does, with the history of [Options] or of
// the collection.
func NewSink[T any](db *DB, c Collection, codec Codec[T]) (*Sink[T], error) {
	var history History
	if db != nil {
		history = db.historyOf(c)
	}
	if err := history.validate(); err != nil {
		return nil, err
	}
	store, err := newStore(db, c, codec, history)
	if err != nil {
		return nil, err
	}
	return &Sink[T]{store: store}, nil
}

// Label is that of [Store].
func (s *Sink[T]) Label() string { return s.store.Label() }

// SetLabel is that of [Store].
func (s *Sink[T]) SetLabel(label string, distrust bool, sections ...string) error {
	return s.store.SetLabel(label, distrust, sections...)
}

// Policy asks for the last state of each object, or, with a history, for every state, in
// the groups of [Options].
func (s *Sink[T]) Policy() tarn.SinkPolicy[T] {
	opts := s.store.c.db.opts
	p := tarn.SinkPolicy[T]{Name: "disk", Delay: opts.GroupDelay, BatchSize: opts.GroupSize}
	if s.store.c.history.on() {
		p.EveryState, p.MaxBytes = true, waitingStates*waitingSize
		p.SizeOf = func(tarn.Change[T]) int { return waitingSize }
	}
	return p
}

// waitingStates is how many states wait for a disk that cannot be written before they are
// folded, waitingSize about what one holds in memory beside the parts that it shares.
const waitingStates, waitingSize = 16 << 10, 4 << 10

// Open describes the content of the file. [DB.Flush] and [DB.Close] call flush.
func (s *Sink[T]) Open(_ context.Context, flush func() error) (tarn.Kept, error) {
	s.store.c.db.follow(s, flush)
	kept, err := s.store.kept(s.store.shown())
	if err != nil {
		return tarn.Kept{}, fmt.Errorf("nothing could be loaded from disk: %w", err)
	}
	return kept, nil
}

// Load reads all objects.
func (s *Sink[T]) Load(ctx context.Context) ([]tarn.Change[T], error) {
	all, err := s.store.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing could be loaded from disk: %w", err)
	}
	if all.version == "" {
		return nil, fmt.Errorf("sqlite: %s: %w", s.store.c.Name, tarn.ErrSinkEmpty)
	}
	return all.items, nil
}

// largeState is the largest number of changes in one transaction of a first state.
const largeState = 5_000

// Commit writes a batch in one transaction. It writes the first state of a large
// collection in several, to keep the log small: until its end a crash can lose nothing.
func (s *Sink[T]) Commit(_ context.Context, b tarn.Batch[T]) error {
	whole := b.Whole || s.store.c.snapshot().objects == 0
	err := s.commit(b)
	if tarn.Taken(err) {
		s.store.bundle(whole)
	}
	return err
}

func (s *Sink[T]) commit(b tarn.Batch[T]) error {
	if s.store.c.history.on() {
		return s.commitLogged(b)
	}
	// Objects of one owner have similar names. Next to each other they load faster,
	// because each shares most of its content with the one before, and index pages fill
	// one after the other.
	changes := slices.SortedStableFunc(slices.Values(b.Changes), func(a, b tarn.Change[T]) int {
		return strings.Compare(string(a.Key), string(b.Key))
	})
	all := b.Whole
	var bad tarn.ObjectErrors
	if empty := s.store.c.snapshot().objects == 0; empty || all && len(changes) > largeState {
		for len(changes) > largeState {
			err := s.store.write(batch[T]{changes: changes[:largeState], all: all, part: true, lastContact: b.LastContact})
			if !tarn.Taken(err) {
				return err
			}
			bad = withRefused(bad, err)
			changes, all = changes[largeState:], false
		}
	}
	var at tarn.Positions
	for _, p := range b.Positions {
		at.Move(p)
	}
	return ended(bad, s.store.write(batch[T]{changes: changes, all: all, positions: at, lastContact: b.LastContact}))
}

// withRefused adds the objects that a transaction refused to those of the ones before it.
func withRefused(bad tarn.ObjectErrors, err error) tarn.ObjectErrors {
	some, _ := errors.AsType[tarn.ObjectErrors](err)
	return append(bad, some...)
}

// ended is the result of several transactions. err is that of the last one.
func ended(bad tarn.ObjectErrors, err error) error {
	if len(bad) == 0 || !tarn.Taken(err) {
		return err
	}
	return withRefused(bad, err)
}

func (c *collection) snapshot() state {
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	return c.state
}

// Disk returns the state of the file.
func (s *Sink[T]) Disk() tarn.SinkHealth { return s.store.Disk() }

// Close releases the collection for another store or sink.
func (s *Sink[T]) Close() {
	s.store.c.db.unfollow(s)
	s.store.Release()
}

// follow registers the flush function of a sink.
func (db *DB) follow(sink any, flush func() error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.sinks[sink] = flush
}

func (db *DB) unfollow(sink any) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.sinks, sink)
}

// Flush writes the pending changes of all collections. Without it they are written within
// the group delay.
func (db *DB) Flush() error {
	db.mu.Lock()
	flushes := slices.Collect(maps.Values(db.sinks))
	db.mu.Unlock()
	var all []error
	for _, flush := range flushes {
		all = append(all, flush())
	}
	return errors.Join(all...)
}
