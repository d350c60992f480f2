package memory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// number is an element whose key is a number.
type number struct {
	n     int
	value int
}

func (e number) sortKey() string { return fmt.Sprintf("%05d", e.n) }
func (e number) setPage(*page)   {}

// A tree does not change, whatever is derived from it later.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type state struct {
			tree tree[number]
			want map[int]int
		}
		now := state{want: map[int]int{}}
		var kept []state
		check := func(s state) {
			var have []number
			if wrong := s.tree.sound(func(e number) { have = append(have, e) }); wrong != "" {
				t.Fatal(wrong)
			}
			if len(have) != len(s.want) {
				t.Fatalf("%d elements, want %d", len(have), len(s.want))
			}
			for _, e := range have {
				if v, ok := s.want[e.n]; !ok || v != e.value {
					t.Fatalf("has %v, want %v, %v", e, v, ok)
				}
			}
		}
		p := editor{seq: 1}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			from, n, step := rapid.IntRange(0, 500).Draw(t, "from"), rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "step")
			remove := rapid.Bool().Draw(t, "remove")
			for i := from; i < from+n*step; i += step {
				if remove {
					now.tree.delete(p, number{n: i}.sortKey())
					delete(now.want, i)
				} else {
					now.tree.set(p, number{i, int(p.seq)})
					now.want[i] = int(p.seq)
				}
			}
			p.seq++
			if rapid.Bool().Draw(t, "keep") {
				kept = append(kept, state{now.tree, maps.Clone(now.want)})
				p.clean = p.seq - 1 // existing nodes must not change
			}
			if rapid.IntRange(0, 9).Draw(t, "rebuild") == 0 {
				var all []number
				now.tree.from("", func(items []number) bool { all = append(all, items...); return true })
				now.tree = build(p, all, false)
			}
			key := rapid.IntRange(0, 700).Draw(t, "key")
			e, ok := now.tree.get(number{n: key}.sortKey())
			if v, want := now.want[key]; ok != want || ok && e.value != v {
				t.Fatalf("get %d: %v, %v", key, e, ok)
			}
			var above []int
			now.tree.from(number{n: key}.sortKey(), func(items []number) bool {
				for _, e := range items {
					above = append(above, e.n)
				}
				return true
			})
			want := slices.DeleteFunc(slices.Sorted(maps.Keys(now.want)), func(n int) bool { return n < key })
			if !slices.Equal(above, want) {
				t.Fatalf("from %d: %v, want %v", key, above, want)
			}
		}
		for _, s := range append(kept, now) {
			check(s)
		}
	})
}

func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb := newTable[int]()
		want := map[tarn.Key]*cell[int]{}
		if rapid.Bool().Draw(t, "reserve") {
			tb.reserve(rapid.IntRange(0, 5000).Draw(t, "cells"))
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			from, n := rapid.IntRange(0, 3000).Draw(t, "from"), rapid.IntRange(0, 2500).Draw(t, "n")
			remove := rapid.Bool().Draw(t, "remove")
			for i := from; i < from+n; i++ {
				key := tarn.Key(fmt.Sprint("key/", i))
				switch c, ok := want[key]; {
				case remove && ok:
					tb.remove(c)
					delete(want, key)
				case !remove && !ok:
					want[key] = &cell[int]{key: key}
					tb.insert(want[key], tb.hash(key))
				}
			}
			for i := range 6000 {
				key := tarn.Key(fmt.Sprint("key/", i))
				if tb.find(key) != want[key] {
					t.Fatalf("%s leads to another cell, or none", key)
				}
			}
			if tb.live() != len(want) {
				t.Fatalf("%d cells, want %d", tb.live(), len(want))
			}
		}
	})
}
