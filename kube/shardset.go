package kube

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// ShardKey is the field of an object whose hash decides to which shard the object belongs,
// as shard selectors name it. Neither field ever changes, so an object stays in its shard.
type ShardKey string

const (
	// ShardByUID spreads objects evenly. An object that is deleted and created again may
	// belong to another shard.
	ShardByUID ShardKey = "object.metadata.uid"
	// ShardByNamespace keeps a namespace together, for controllers that read objects of
	// several kinds side by side. Large namespaces make shards uneven. Objects without a
	// namespace all belong to one shard.
	ShardByNamespace ShardKey = "object.metadata.namespace"
)

// A HashRange has the hashes from First to Last, both included.
type HashRange struct{ First, Last uint64 }

// A ShardSet is a part of all objects: those whose key has its hash, FNV-1a of 64 bits,
// in one of some ranges. The zero value is not valid: use [ShardOf] or [NewShardSet].
type ShardSet struct {
	key ShardKey
	// ranges are in order, and have gaps between them.
	ranges []HashRange
}

// maxShards bounds n: more processes than that have other problems.
const maxShards = 1 << 20

// ShardOf is shard i of n, counted from 0: an n-th of all hashes. Shard 0 of 1 has all.
func ShardOf(key ShardKey, i, n int) (ShardSet, error) {
	if n < 1 || n > maxShards || i < 0 || i >= n {
		return ShardSet{}, fmt.Errorf("kube: there is no shard %d of %d: n is 1 to %d, and shards are counted from 0 to n-1", i, n, maxShards)
	}
	last := uint64(math.MaxUint64)
	if i+1 < n {
		last = shardStart(i+1, n) - 1
	}
	return NewShardSet(key, HashRange{shardStart(i, n), last})
}

// shardStart is the first hash of a shard: i × 2^64 / n.
func shardStart(i, n int) uint64 {
	start, _ := bits.Div64(uint64(i), 0, uint64(n))
	return start
}

// NewShardSet is the set of these ranges, which may overlap. Without ranges it has no
// objects.
func NewShardSet(key ShardKey, ranges ...HashRange) (ShardSet, error) {
	if key != ShardByUID && key != ShardByNamespace {
		return ShardSet{}, fmt.Errorf("kube: objects cannot be sharded by %q: use ShardByUID or ShardByNamespace", key)
	}
	s := ShardSet{key: key}
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b HashRange) int { return cmp.Compare(a.First, b.First) })
	for _, r := range sorted {
		if r.First > r.Last {
			return ShardSet{}, fmt.Errorf("kube: the range of hashes from %#x to %#x is empty", r.First, r.Last)
		}
		if n := len(s.ranges); n > 0 && (r.First <= s.ranges[n-1].Last || r.First == s.ranges[n-1].Last+1) {
			s.ranges[n-1].Last = max(s.ranges[n-1].Last, r.Last)
			continue
		}
		s.ranges = append(s.ranges, r)
	}
	return s, nil
}

// Key is the field that decides.
func (s ShardSet) Key() ShardKey { return s.key }

// Ranges are those of the set, in order, with gaps between them.
func (s ShardSet) Ranges() []HashRange { return slices.Clone(s.ranges) }

// Union has the objects of both sets, which must have the same key.
func (s ShardSet) Union(other ShardSet) ShardSet {
	union, _ := NewShardSet(s.key, slices.Concat(s.ranges, other.ranges)...) // both are valid
	return union
}

// Has reports whether an object belongs to the set.
func (s ShardSet) Has(namespace, uid string) bool {
	return s.hasHash(s.key.Hash(namespace, uid))
}

// Hash is the hash that decides to which shard an object belongs.
func (k ShardKey) Hash(namespace, uid string) uint64 {
	if k == ShardByNamespace {
		return shardHash(namespace)
	}
	return shardHash(uid)
}

func (s ShardSet) hasHash(hash uint64) bool {
	for _, r := range s.ranges {
		if hash <= r.Last {
			return r.First <= hash
		}
	}
	return false
}

// All reports whether every object belongs to the set.
func (s ShardSet) All() bool {
	return len(s.ranges) == 1 && s.ranges[0] == HashRange{0, math.MaxUint64}
}

// Equal reports whether both sets have the same objects.
func (s ShardSet) Equal(other ShardSet) bool {
	return s.key == other.key && slices.Equal(s.ranges, other.ranges)
}

// Contains reports whether all objects of another set, which must have the same key, belong
// to this one.
func (s ShardSet) Contains(other ShardSet) bool { return s.Union(other).Equal(s) }

// Share is the part of all hashes that the set has, from 0 to 1.
func (s ShardSet) Share() (part float64) {
	for _, r := range s.ranges {
		part += (float64(r.Last-r.First) + 1) / (1 << 64)
	}
	return part
}

// Selector is the set as the parameter shardSelector of a request (KEP-5866). It is empty
// for the set that has all objects. An empty set cannot be written, so the selector of one
// has a single hash.
func (s ShardSet) Selector() string {
	if s.All() {
		return ""
	}
	ranges := s.ranges
	if len(ranges) == 0 {
		ranges = []HashRange{{}}
	}
	calls := make([]string, len(ranges))
	for i, r := range ranges {
		end := fmt.Sprintf("0x%016x", r.Last+1)
		if r.Last == math.MaxUint64 {
			end = "0x10000000000000000"
		}
		calls[i] = fmt.Sprintf("shardRange(%s, '0x%016x', '%s')", s.key, r.First, end)
	}
	return strings.Join(calls, " || ")
}

// String describes the set: "25.0 % of all by uid, 1 range".
func (s ShardSet) String() string {
	ranges := "ranges"
	if len(s.ranges) == 1 {
		ranges = "range"
	}
	return fmt.Sprintf("%.1f %% of all by %s, %d %s", 100*s.Share(), strings.TrimPrefix(string(s.key), "object.metadata."), len(s.ranges), ranges)
}

const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// shardHash is FNV-1a. The package hash/fnv would make a string of the bytes, or bytes of
// the string.
func shardHash[S string | []byte](value S) uint64 {
	hash := uint64(fnvOffset)
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * fnvPrime
	}
	return hash
}
