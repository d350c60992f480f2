package kube

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
)

// The n shards of any n have every hash once, in parts of the same size.
func TestShardsAreTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 4, 5, 7, 12, 100, 4096, maxShards} {
		next := uint64(0)
		for i := range n {
			set, err := ShardOf(ShardByUID, i, n)
			if err != nil {
				t.Fatal(err)
			}
			r := set.Ranges()[0]
			if r.First != next {
				t.Fatalf("shard %d of %d begins with %#x, and the one before ends before %#x", i, n, r.First, next)
			}
			if next = r.Last + 1; next == 0 != (i == n-1) {
				t.Fatalf("shard %d of %d ends with %#x", i, n, r.Last)
			}
			if share := set.Share() * float64(n); share < 0.999 || share > 1.001 {
				t.Fatalf("shard %d of %d has %f of its part", i, n, share)
			}
		}
		for range 100 {
			uid, owners := fmt.Sprint(random.Uint64()), 0
			for i := range min(n, 100) {
				if set, _ := ShardOf(ShardByUID, i, min(n, 100)); set.Has("", uid) {
					owners++
				}
			}
			if owners != 1 {
				t.Fatalf("%d shards of %d have %s", owners, n, uid)
			}
		}
	}
}

func TestNoSuchShard(t *testing.T) {
	for _, c := range [][2]int{{-1, 4}, {4, 4}, {0, 0}, {0, -1}, {0, maxShards + 1}} {
		if _, err := ShardOf(ShardByUID, c[0], c[1]); err == nil || !strings.Contains(err.Error(), "counted from 0") {
			t.Errorf("shard %d of %d: %v", c[0], c[1], err)
		}
		if _, err := FixedShard(c[0], c[1]); err == nil {
			t.Errorf("a fixed shard %d of %d", c[0], c[1])
		}
	}
	if _, err := ShardOf("object.metadata.name", 0, 2); err == nil {
		t.Error("a shard by name")
	}
	if _, err := NewShardSet(ShardByUID, HashRange{2, 1}); err == nil {
		t.Error("a range that ends before it begins")
	}
}

// A set of ranges has what any of them has, and its ranges neither touch nor overlap.
func TestShardSetOfRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var ranges []HashRange
		for range random.IntN(6) {
			first := random.Uint64N(64)
			ranges = append(ranges, HashRange{first, first + random.Uint64N(16)})
		}
		set, err := NewShardSet(ShardByNamespace, ranges...)
		if err != nil {
			t.Fatal(err)
		}
		for hash := range uint64(100) {
			want := false
			for _, r := range ranges {
				want = want || r.First <= hash && hash <= r.Last
			}
			if set.hasHash(hash) != want {
				t.Fatalf("%v of %v has %d: %v", set.Ranges(), ranges, hash, !want)
			}
		}
		for i, r := range set.Ranges()[min(1, len(set.Ranges())):] {
			if r.First <= set.Ranges()[i].Last+1 {
				t.Fatalf("%v touch", set.Ranges())
			}
		}
	}
}

func TestShardHashIsFNV(t *testing.T) {
	for _, text := range []string{"", "a", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"} {
		h := fnv.New64a()
		h.Write([]byte(text))
		if got := shardHash(text); got != h.Sum64() {
			t.Errorf("%q: %x, want %x", text, got, h.Sum64())
		}
	}
}
