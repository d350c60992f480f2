package protobuf

import (
	"sync"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
)

// lastStates remembers hashes of the last state of each object, so that the next
// state can take over what did not change. Most updates change the status and leave
// the spec, and no other object has all of that spec. One lookup here replaces some
// twenty in the pool, and each of those is a cache miss of the processor.
//
// Each decoder has its own, because a state can be taken over only by a state of
// the same Go type with the same fields dropped. It holds hashes only: one for an
// object that was decoded once, in 20 to 40 bytes. The state itself comes from the
// holder of the objects. Why not a weak pointer to it: that takes 200 bytes, and 2
// µs for each object of a list, and most objects never change.
//
// It is a map and not a [recent.Table]: the last state of an object is needed
// however long ago it was decoded, and its owner says when the object is gone.
//
// Each hash is salted with the address and the version of its state, so that it
// matches no other state: neither one of the same version from a server that went
// back in time, nor a later one at the same address. A state without a version is
// not remembered.
type lastStates struct {
	shards [stateShards]stateShard
}

const (
	stateShards = 16
	// maxParts is how many parts of a state are remembered.
	maxParts = 12
)

// stateShard has the objects of some uids. Objects with one hash are in once, as
// all are that were decoded once; the others are in more.
type stateShard struct {
	mu   sync.Mutex
	once shrinkingMap[singleHash]
	more shrinkingMap[partHashes]
}

// singleHash is what is remembered of an object that was decoded once. Its hash is in two
// halves, so that it takes 12 bytes.
type singleHash struct {
	high, low uint32
	checked   pool.Seconds
}

// shrinkingMap is a map that is rebuilt when three quarters of its entries are gone: maps
// grow, but never shrink.
type shrinkingMap[V any] struct {
	entries map[uint64]V
	peak    int
}

// minPeak is the number of entries from which on a map is rebuilt.
const minPeak = 64

func (t *shrinkingMap[V]) put(uid uint64, v V) {
	if t.entries == nil {
		t.entries = map[uint64]V{}
	}
	t.entries[uid] = v
	t.peak = max(t.peak, len(t.entries))
}

func (t *shrinkingMap[V]) drop(uid uint64) {
	delete(t.entries, uid)
	if t.peak < minPeak || len(t.entries) > t.peak/4 {
		return
	}
	left := make(map[uint64]V, len(t.entries))
	for uid, v := range t.entries {
		left[uid] = v
	}
	t.entries, t.peak = left, len(left)
}

// partHashes are hashes of the bytes of parts that can be taken over.
//
// A hash has 64 bits, where shared parts have 128: it is compared with the hashes
// of a dozen parts, not of all parts, and its seed is secret.
type partHashes struct {
	n int32
	// checked is when the parts were last known to match their bytes.
	checked pool.Seconds
	hashes  [maxParts]uint64
}

func (h *partHashes) add(hash uint64) {
	if int(h.n) < len(h.hashes) {
		h.hashes[h.n] = hash
		h.n++
	}
}

// remove takes back the nth hash: its part cannot be taken over after all.
func (h *partHashes) remove(n int32) {
	if n < h.n {
		h.hashes[n] = 0
	}
}

func (h *partHashes) has(hash uint64) bool {
	for _, known := range h.hashes[:h.n] {
		if known == hash {
			return true
		}
	}
	return false
}

// applySalt turns hashes into those of a state, and back.
func (h *partHashes) applySalt(salt uint64) {
	for i := range h.hashes[:h.n] {
		h.hashes[i] ^= salt
	}
}

func (p *lastStates) shard(uid uint64) *stateShard { return &p.shards[uid%stateShards] }

// recall returns the hashes of an object's last state in parts; all says that there
// is more than one.
func (p *lastStates) recall(uid uint64, parts *partHashes) (all bool) {
	s := p.shard(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.more.entries[uid]; ok {
		*parts = known
		return true
	}
	if known, ok := s.once.entries[uid]; ok {
		parts.n, parts.hashes[0], parts.checked = 1, uint64(known.high)<<32|uint64(known.low), known.checked
	}
	return false
}

// note makes a state the last one of its object. With first set it does so only if
// no state is remembered. It says whether it did.
func (p *lastStates) note(uid uint64, parts *partHashes, first bool) bool {
	s := p.shard(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, once := s.once.entries[uid]
	_, more := s.more.entries[uid]
	if first && (once || more) {
		return false
	}
	if parts.n == 1 {
		s.once.put(uid, singleHash{uint32(parts.hashes[0] >> 32), uint32(parts.hashes[0]), parts.checked})
		if more {
			s.more.drop(uid)
		}
		return true
	}
	s.more.put(uid, *parts)
	if once {
		s.once.drop(uid)
	}
	return true
}

// forget drops the last state of an object.
func (p *lastStates) forget(uid uint64) {
	s := p.shard(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once.drop(uid)
	s.more.drop(uid)
}

// len is how many objects are remembered.
func (p *lastStates) len() (n int) {
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		n += len(s.once.entries) + len(s.more.entries)
		s.mu.Unlock()
	}
	return n
}

// clear forgets all.
func (p *lastStates) clear() {
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		s.once, s.more = shrinkingMap[singleHash]{}, shrinkingMap[partHashes]{}
		s.mu.Unlock()
	}
}
