package memory

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory/query"
)

// The tree finds the same as a comparison with every span, whatever was added and
// removed before.
func TestSpanTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		aKey := rapid.StringMatching("[ab]{0,4}")
		var tree spanTree
		model := map[span]*topic{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				of := span{From: aKey.Draw(t, "from"), To: aKey.Draw(t, "to")}
				if rapid.Bool().Draw(t, "prefix") {
					of = query.PrefixSpan(of.From)
				}
				if got, had := tree.topicOf(of), model[of]; had != nil && got != had {
					t.Fatalf("%q has two topics", of)
				} else {
					model[of] = got
				}
			},
			"remove": func(t *rapid.T) {
				of := span{From: aKey.Draw(t, "from"), To: aKey.Draw(t, "to")}
				for known := range model {
					if rapid.Bool().Draw(t, "this one") {
						of = known
					}
				}
				tree.remove(of)
				delete(model, of)
			},
			"": func(t *rapid.T) {
				key := aKey.Draw(t, "key")
				found := tree.covering(nil, key)
				want := 0
				for of, topic := range model {
					if has := of.Has(key); has != slices.Contains(found, topic) {
						t.Fatalf("%q has %q: %v, and is found: %v", of, key, has, !has)
					} else if has {
						want++
					}
				}
				if len(found) != want || len(tree.root.all(nil)) != len(model) {
					t.Fatalf("%d are found, want %d; %d are kept, want %d", len(found), want, len(tree.root.all(nil)), len(model))
				}
			},
		})
	})
}

// A write visits the spans that have its key, and few others, however many exist:
// prefixes beside it, around it, nested in each other, and ranges.
func TestWritesVisitOnlyWhatCoversTheirKey(t *testing.T) {
	const n = 3000
	for name, spanOf := range map[string]func(i int) (from, to string){
		"prefixes before it": func(i int) (string, string) { p := query.PrefixSpan(fmt.Sprintf("a-%d/", i)); return p.From, p.To },
		"prefixes behind it": func(i int) (string, string) { p := query.PrefixSpan(fmt.Sprintf("z-%d/", i)); return p.From, p.To },
		"around it": func(i int) (string, string) {
			p := query.PrefixSpan(fmt.Sprintf("%c-%d/", 'a'+rune(i%26), i))
			return p.From, p.To
		},
		"ranges that end before it":   func(i int) (string, string) { return fmt.Sprintf("a%05d", i), "m" },
		"ranges that begin behind it": func(i int) (string, string) { return fmt.Sprintf("n%05d", i), "" },
		"ranges that hold nothing":    func(i int) (string, string) { return fmt.Sprintf("z%05d", i), "a" },
	} {
		t.Run(name, func(t *testing.T) {
			s := New[string]()
			for i := range n {
				from, to := spanOf(i)
				s.RangeWatch(t.Context(), tarn.Key(from), tarn.Key(to))
			}
			_, wanted := s.PrefixWatch(t.Context(), "m/")
			before := s.watchers.spans.visits
			if err := s.Put("m/1", "x"); err != nil {
				t.Fatal(err)
			}
			// The depth of a treap of n nodes is below 4 log2 n except in one case
			// in a billion; a search that finds one goes down about twice.
			visits, most := s.watchers.spans.visits-before, int(8*math.Log2(n))
			t.Logf("%d of %d are visited", visits, n)
			if visits > most || !closed(wanted) || registered(s) != n {
				t.Errorf("%d of %d are visited, want at most %d; the one that has the key is closed: %v; %d are left", visits, n, most, closed(wanted), registered(s))
			}
		})
	}
}
