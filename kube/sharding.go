package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// A Sharding says which part of their collections some copies have. All copies that are
// made with it have the same part, and [Sharding.Set] changes it while they run.
//
// A change makes each copy read its collection once more, unless it only loses objects.
// Objects that come or go with it are no news to subscribers, unless these ask: see
// [tarn.Change.Moved].
type Sharding struct {
	// fixed says that the set never changes, so that the copy may be kept on disk.
	fixed bool

	mu      sync.Mutex
	wanted  *ShardSet
	readers map[*shardReader]bool
	// taken is closed, and made again, when a copy has another set, or ends.
	taken chan struct{}
}

// NewSharding returns a sharding that begins with a set.
func NewSharding(set ShardSet) *Sharding {
	return &Sharding{wanted: &set, readers: map[*shardReader]bool{}, taken: make(chan struct{})}
}

// FixedShard is the sharding of shard i of n by uid, for good.
func FixedShard(i, n int) (*Sharding, error) {
	set, err := ShardOf(ShardByUID, i, n)
	if err != nil {
		return nil, err
	}
	s := NewSharding(set)
	s.fixed = true
	return s, nil
}

// Wanted is the set that the copies have, or are about to have.
func (s *Sharding) Wanted() ShardSet { return *s.current() }

func (s *Sharding) current() *ShardSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// Set changes the set of all copies, which must have the same key. It returns at once;
// WaitTaken waits for the copies.
func (s *Sharding) Set(set ShardSet) error {
	s.mu.Lock()
	if s.fixed || set.key != s.wanted.key {
		key := s.wanted.key
		s.mu.Unlock()
		return fmt.Errorf("kube: a shard by %s cannot become one by %s: only a sharding of NewSharding can change, and never its key", key, set.key)
	}
	if set.Equal(*s.wanted) {
		s.mu.Unlock()
		return nil
	}
	s.wanted = &set
	var changed []func()
	for r := range s.readers {
		changed = append(changed, r.changed)
	}
	s.mu.Unlock()
	for _, f := range changed {
		f()
	}
	return nil
}

// WaitTaken waits until every copy that runs has the whole of the wanted set. An informer
// that is not started yet, and a copy that has ended, is not waited for.
func (s *Sharding) WaitTaken(ctx context.Context) error {
	for {
		s.mu.Lock()
		behind, wait := s.behind(), s.taken
		s.mu.Unlock()
		if behind == 0 {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("kube: %d copies do not have their shard yet: %w", behind, context.Cause(ctx))
		}
	}
}

// AllTaken reports whether every copy that runs has the wanted set. changed is closed when
// that may have changed.
func (s *Sharding) AllTaken() (taken bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behind() == 0, s.taken
}

// behind counts the copies that do not have the wanted set. mu is held.
func (s *Sharding) behind() (n int) {
	for r := range s.readers {
		if r.taken != s.wanted {
			n++
		}
	}
	return n
}

// woken wakes the callers of WaitTaken. mu is held.
func (s *Sharding) woken() {
	close(s.taken)
	s.taken = make(chan struct{})
}

// errKeptShard refuses a disk for a copy whose content depends on more than its position.
var errKeptShard = errors.New("kube: a copy whose shard can change cannot be kept in a sink or store: after a restart nobody knows which shard was written; use a fixed shard, or leave the sink out")

// keepable reports whether a copy of the sharding may be kept on disk. A nil sharding has
// all objects.
func (s *Sharding) keepable() bool { return s == nil || s.fixed }

// shardReader is what one source reads of a sharding. It is a [tarn.ShardReader].
type shardReader struct {
	sharding *Sharding
	changed  func()
	// reading is the set of the source's requests; nil until Begin, then the requests
	// have the set that is wanted when they are made.
	reading atomic.Pointer[ShardSet]
	// taken is the set that the store has. The sharding's lock guards it.
	taken *ShardSet

	// byServer says that the server selects by shard.
	byServer atomic.Bool
	dropped  atomic.Int64
}

var _ tarn.ShardReader = (*shardReader)(nil)

func newShardReader(s *Sharding) *shardReader {
	if s == nil {
		return nil
	}
	return &shardReader{sharding: s}
}

// announce adds a source that is about to be read to those that the sharding waits for.
func (r *shardReader) announce() {
	if r != nil {
		r.Open(func() {})
	}
}

// Open adds the source to those that the sharding waits for.
func (r *shardReader) Open(changed func()) {
	s := r.sharding
	s.mu.Lock()
	defer s.mu.Unlock()
	r.changed = changed
	s.readers[r] = true
}

// Close removes it.
func (r *shardReader) Close() {
	s := r.sharding
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, r)
	s.woken()
}

// Begin makes the next requests have the set that is wanted now.
//
// A part of all objects does not count as within them: only the answer to a list tells
// whether the server selects, and the list of all did not ask.
func (r *shardReader) Begin() (has func(tarn.Meta) bool, within bool) {
	s := r.sharding
	s.mu.Lock()
	set, held := s.wanted, r.taken
	s.mu.Unlock()
	r.reading.Store(set)
	if s.fixed {
		return nil, false
	}
	has = func(m tarn.Meta) bool {
		namespace, _ := splitKey(m.Key)
		return set.Has(namespace, m.UID)
	}
	return has, held != nil && !held.All() && held.Contains(*set)
}

// Taken records that the store has the set of Begin.
func (r *shardReader) Taken() {
	s := r.sharding
	s.mu.Lock()
	defer s.mu.Unlock()
	r.taken = r.reading.Load()
	s.woken()
}

// Health says what is read, and who selects.
func (r *shardReader) Health() tarn.ShardHealth {
	set := r.reading.Load()
	if set == nil {
		set = r.sharding.current()
	}
	return tarn.ShardHealth{Name: set.String(), Share: set.Share(), ByServer: r.byServer.Load(), Dropped: r.dropped.Load()}
}

// filter is that of a request; nil if everything is wanted.
func (r *shardReader) filter() *shardFilter {
	if r == nil {
		return nil
	}
	set := r.reading.Load()
	if set == nil {
		set = r.sharding.current()
	}
	if set.All() {
		return nil
	}
	return &shardFilter{set: *set, reader: r}
}

// Shard implements [tarn.Sharded].
func (s *Source[T]) Shard() tarn.ShardReader {
	if s.shard == nil {
		return nil
	}
	return s.shard
}
