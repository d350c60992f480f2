package wire

import (
	"math"
	"sync"
	"unsafe"
	"weak"
)

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	// youngParts and youngBytes bound what a shard holds strongly; all shards
	// together 32,768 parts and 16 MiB.
	youngParts = 512
	youngBytes = 256 << 10
	// agingBatch is how many young parts leave at a time when there are too many:
	// few, because each may need a weak pointer and others wait for the lock.
	agingBatch = 32
	// worthWeak is the size below which a part is not worth a weak pointer, whose
	// cost it could never bring in.
	worthWeak = 48
)

// shard is the part of a pool under one lock.
//
// Parts are filed under the first half of their key; the second is compared. So one
// who looks for a part that is mostly not there makes one hash of it, not two. That
// two parts have the first half in common does not happen by chance, and if it did,
// the later one would not be shared.
//
// Invariants: young holds the key of each entry with a strong pointer once, in
// the order of arrival; the first aged of them have seen a garbage collection.
type shard struct {
	mu    sync.Mutex
	parts map[uint64]pooled
	peak  int // of len(parts) since the map was made: maps grow, but never shrink

	young      []uint64
	aged       int
	youngBytes int
	forgotten  fingerprints

	hits, misses     uint64
	promoted, lonely uint64

	_ [64]byte // keeps the locks of neighbours apart
}

// pooled is a part, held strongly by ptr while it is young, by weak thereafter.
type pooled struct {
	ptr   unsafe.Pointer
	weak  weak.Pointer[byte]
	b     uint64 // of the key
	n     int
	size  uint32
	owner owner
}

func (s *shard) get(k key, by owner) (part, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, b, found := s.find(k.a, by)
	if !found || b != k.b {
		return part{}, false
	}
	return x, true
}

// sight finds what is filed under the first half of a key, and returns the second,
// which is to be compared. If there is nothing, it says whether another object had it
// before it was forgotten, or was not admitted, and makes a note of it for the next
// one.
func (s *shard) sight(a uint64, by owner) (x part, b uint64, found, before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, b, found = s.find(a, by); found {
		return x, b, true, true
	}
	if before = s.forgotten.knows(a, by); !before {
		s.forgotten.note(a, by)
	}
	return part{}, 0, false, before
}

func (s *shard) find(a uint64, by owner) (x part, b uint64, found bool) {
	e, ok := s.parts[a]
	if !ok {
		s.misses++
		return part{}, 0, false
	}
	ptr := e.ptr
	if ptr == nil {
		if ptr = unsafe.Pointer(e.weak.Value()); ptr == nil {
			delete(s.parts, a)
			s.misses++
			return part{}, 0, false
		}
	} else if e.owner != several && (by == anyone || by != e.owner) {
		e.owner = several
		s.parts[a] = e
	}
	s.hits++
	return part{ptr, e.n}, e.b, true
}

func (s *shard) put(k key, x part, size int, by owner) part {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.parts[k.a]; ok {
		if first, b, ok := s.find(k.a, by); ok && b == k.b {
			return first
		} else if ok {
			return x
		}
	}
	if s.parts == nil {
		s.parts = map[uint64]pooled{}
	}
	if s.forgotten.knows(k.a, by) {
		by = several
	}
	e := pooled{ptr: x.ptr, b: k.b, n: x.n, size: uint32(min(size, math.MaxUint32)), owner: by}
	s.parts[k.a] = e
	s.peak = max(s.peak, len(s.parts))
	s.young = append(s.young, k.a)
	s.youngBytes += int(e.size)
	if len(s.young) > youngParts || s.youngBytes > youngBytes && len(s.young) > 1 {
		s.age(min(agingBatch, len(s.young)-1))
	}
	return x
}

// replace puts a part in the place of one that is not good any more.
func (s *shard) replace(k key, x part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.parts[k.a]
	if !ok || e.b != k.b {
		return
	}
	if e.n = x.n; e.ptr != nil {
		e.ptr = x.ptr
	} else {
		e.weak = weak.Make((*byte)(x.ptr))
	}
	s.parts[k.a] = e
}

// clear strikes all parts off.
func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts, s.peak = nil, 0
	s.young, s.aged, s.youngBytes = nil, 0, 0
}

// age takes the n parts that are young for the longest time out of youth.
func (s *shard) age(n int) {
	for _, a := range s.young[:n] {
		e := s.parts[a]
		s.youngBytes -= int(e.size)
		if e.owner == several && e.size >= worthWeak {
			e.weak, e.ptr = weak.Make((*byte)(e.ptr)), nil
			s.parts[a] = e
			s.promoted++
			continue
		}
		delete(s.parts, a)
		s.forgotten.note(a, e.owner)
		s.lonely++
	}
	s.young = s.young[:copy(s.young, s.young[n:])]
	s.aged = max(0, s.aged-n)
}

// collect follows a garbage collection: parts that were young before the last one
// age, or all if told so, and old parts that are gone are struck off.
func (s *shard) collect(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all {
		s.aged = len(s.young)
	}
	s.age(s.aged)
	s.aged = len(s.young)
	if len(s.young) == 0 {
		s.young = nil
	}
	for a, e := range s.parts {
		if e.ptr == nil && e.weak.Value() == nil {
			delete(s.parts, a)
		}
	}
	if len(s.parts)*4 < s.peak {
		s.rebuild()
	}
}

// rebuild gives back the memory of a map that was once much larger.
func (s *shard) rebuild() {
	s.peak = len(s.parts)
	if s.peak == 0 {
		s.parts = nil
		return
	}
	parts := make(map[uint64]pooled, len(s.parts))
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
	stats.Forgotten += s.lonely
	for _, e := range s.parts {
		stats.Bytes += int64(e.size)
	}
}
