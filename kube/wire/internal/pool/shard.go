package pool

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"unsafe"
	"weak"

	"github.com/tarnproject/tarn/kube/wire/internal/shape"
)

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	// youngParts and youngBytes bound what a shard holds strongly; all shards
	// together 32,768 parts and 16 MiB.
	youngParts = 512
	youngBytes = 256 << 10
	// demoteBatch is how many young parts leave at a time when there are too many:
	// few, because each may need a weak pointer and others wait for the lock.
	demoteBatch = 32
)

// shard is the section of a pool under one lock.
//
// Parts are found by the first half of their key, and then the second half is
// compared. So a lookup that finds nothing, as most do, makes one hash and not two.
// Two parts with the same first half do not occur by chance; if they did, the later
// one would not be shared.
//
// Invariants: young holds the key of each entry with a strong pointer once, in the
// order of arrival; the first survived of them have survived a garbage collection.
type shard struct {
	mu    sync.Mutex
	parts map[uint64]*entry
	peak  int // of len(parts) since the map was made: maps grow, but never shrink

	young      []uint64
	survived   int
	youngBytes int
	forgotten  fingerprints

	hits, misses      uint64
	promoted, dropped uint64

	_ [64]byte // keeps the locks of neighbours apart
}

// entry is a part that is held strongly by ptr while it is young, and by weak when it
// is old.
//
// It lies outside of the map, because most slots of a map are empty: with it in the map,
// the parts of 6,752 pods took 1.2 MB instead of 0.4.
type entry struct {
	ptr      unsafe.Pointer
	weak     weak.Pointer[byte]
	second   uint64 // of the key
	n        int
	ref      *shape.Ref
	checksum checksum
	size     uint32
	owner    Owner
	// checked is when the part was last known to be intact.
	checked Seconds
}

func (e *entry) memory() shape.Memory { return shape.Memory{Ptr: e.ptr, N: e.n} }

func (e *entry) toPart() Part { return Part{e.memory(), e.ref, e.checksum, int(e.size), e.checked} }

// find returns the entry under the first half of a key, with its ptr set, and
// whether it is due to be verified; then the caller verifies it at once. The caller
// holds the lock.
func (s *shard) find(a uint64, r Request) (e entry, due, found bool) {
	kept, ok := s.parts[a]
	if !ok {
		s.misses++
		return e, false, false
	}
	ptr := kept.ptr
	if ptr == nil {
		if ptr = unsafe.Pointer(kept.weak.Value()); ptr == nil {
			delete(s.parts, a)
			s.misses++
			return e, false, false
		}
	} else if kept.owner != SeveralOwners && (r.Owner == UnknownOwner || r.Owner != kept.owner) {
		kept.owner = SeveralOwners
	}
	if due = kept.ref != nil && (r.Verify || kept.checked.Due(r.Now)); due {
		kept.checked = r.Now
	}
	s.hits++
	e = *kept
	e.ptr = ptr
	return e, due, true
}

// put adds a part, unless one exists already, and returns the one to use. The
// caller holds the lock.
func (s *shard) put(k Key, x Part, by Owner) Part {
	if kept, ok := s.parts[k.First]; ok {
		// Whether first is due does not matter: x is not better.
		if first, _, ok := s.find(k.First, Request{Owner: by, Now: kept.checked}); ok && first.second == k.Second {
			return first.toPart()
		} else if ok {
			return x
		}
	}
	if s.parts == nil {
		s.parts = map[uint64]*entry{}
	}
	if s.forgotten.knows(k.First, by) {
		by = SeveralOwners
	}
	e := &entry{ptr: x.Ptr, second: k.Second, n: x.N, ref: x.Ref, checksum: x.checksum, size: uint32(min(x.Size, math.MaxUint32)), owner: by, checked: x.Checked}
	s.parts[k.First] = e
	s.peak = max(s.peak, len(s.parts))
	s.young = append(s.young, k.First)
	s.youngBytes += int(e.size)
	if len(s.young) > youngParts || s.youngBytes > youngBytes && len(s.young) > 1 {
		s.demote(min(demoteBatch, len(s.young)-1))
	}
	return x
}

// remove removes a part, if the entry still holds it.
func (s *shard) remove(a uint64, ptr unsafe.Pointer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.parts[a]
	if !ok || e.ptr != ptr && (e.ptr != nil || unsafe.Pointer(e.weak.Value()) != ptr) {
		return
	}
	delete(s.parts, a)
	if i := slices.Index(s.young, a); i >= 0 {
		s.young = slices.Delete(s.young, i, i+1)
		s.youngBytes -= int(e.size)
		if i < s.survived {
			s.survived--
		}
	}
}

// demote demotes the n oldest young parts. The caller holds the lock.
func (s *shard) demote(n int) {
	for _, a := range s.young[:n] {
		e := s.parts[a]
		s.youngBytes -= int(e.size)
		if e.owner == SeveralOwners && e.size >= MinSize {
			e.weak, e.ptr = weak.Make((*byte)(e.ptr)), nil
			s.promoted++
			continue
		}
		delete(s.parts, a)
		s.forgotten.note(a, e.owner)
		s.dropped++
	}
	s.young = s.young[:copy(s.young, s.young[n:])]
	s.survived = max(0, s.survived-n)
}

// demoteAll demotes all young parts.
func (s *shard) demoteAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.demote(len(s.young))
	s.young = nil
}

// collect runs after a garbage collection. It demotes the young parts that have
// survived two collections, or all of them, and removes old parts that are gone.
func (s *shard) collect(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all {
		s.survived = len(s.young)
	}
	s.demote(s.survived)
	s.survived = len(s.young)
	if len(s.young) == 0 {
		s.young = nil
	}
	for a, e := range s.parts {
		if e.ptr == nil && e.weak.Value() == nil {
			delete(s.parts, a)
		}
	}
	if mapSlots(len(s.parts)+len(s.parts)/8) < mapSlots(s.peak) {
		s.rebuild()
	}
}

// mapSlots is how many slots a map with n entries has at least: they double when seven
// of eight are taken.
func mapSlots(n int) int { return 1 << bits.Len(uint(n*8/7)) }

// rebuild releases the memory of a map that was larger.
func (s *shard) rebuild() {
	s.peak = len(s.parts)
	if s.peak == 0 {
		s.parts = nil
		return
	}
	parts := make(map[uint64]*entry, len(s.parts))
	for a, e := range s.parts {
		parts[a] = e
	}
	s.parts = parts
}

func (s *shard) count(stats *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Young += len(s.young)
	stats.Old += len(s.parts) - len(s.young)
	stats.Hits += s.hits
	stats.Misses += s.misses
	stats.Promoted += s.promoted
	stats.Forgotten += s.dropped
	for _, e := range s.parts {
		stats.Bytes += int64(e.size)
	}
}
