package verify

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/fieldpath"
)

// A digest does not depend on order, and depends on everything else.
func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sides := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) side[any] {
			short := rapid.StringMatching(`[ab]{0,2}`)
			return side[any]{tarn.Meta{Key: tarn.Key(short.Draw(t, "key")), UID: short.Draw(t, "uid"), Version: tarn.Version(short.Draw(t, "version"))},
				map[string]any{"a": short.Draw(t, "content")}}
		}), 1, 8).Draw(t, "objects")
		sum := func(sides []side[any]) (d Digest) {
			for _, s := range sides {
				one, err := s.sum()
				if err != nil {
					t.Fatal(err)
				}
				d.add(one)
			}
			return d
		}
		whole := sum(sides)
		mixed := slices.Clone(sides)
		rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if sum(mixed) != whole {
			t.Fatalf("%v and %v differ", sides, mixed)
		}
		i := rapid.IntRange(0, len(sides)-1).Draw(t, "which")
		other := rapid.SampledFrom(sides).Draw(t, "other")
		mixed = slices.Clone(sides)
		mixed[i] = other
		if same := reflect.DeepEqual(sides[i], other); same != (sum(mixed) == whole) {
			t.Fatalf("%v and %v: same %v", sides, mixed, same)
		}
		if sum(sides[1:]) == whole {
			t.Fatalf("%v: one left out", sides)
		}
		text, _ := whole.MarshalText()
		var back Digest
		if err := back.UnmarshalText(text); err != nil || back != whole || len(text) != 32 {
			t.Fatalf("%s reads as %s: %v", text, back, err)
		}
	})
	if new(Digest).UnmarshalText([]byte("xyz")) == nil {
		t.Error("xyz is not a digest")
	}
	if _, err := (side[any]{object: make(chan int)}).sum(); err == nil {
		t.Error("a channel has no JSON")
	}
}

// Two trees differ exactly if there is a path, and each path leads to something that
// differs.
func TestDifferingFields(t *testing.T) {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](int64(1)), rapid.Just[any](2.5), rapid.Just[any]("x"), rapid.Just[any](true))
	name := rapid.SampledFrom([]string{"a", "b", "c.d", "e/f", "it's", `back\slash`, "with-dash", ""})
	tree := leaf
	for range 3 {
		inner := tree
		tree = rapid.OneOf(leaf,
			rapid.Map(rapid.MapOfN(name, inner, 0, 3), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []any) any { return l }))
	}
	object := rapid.MapOfN(name, tree, 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a := &unstructured.Unstructured{Object: object.Draw(t, "a")}
		b := &unstructured.Unstructured{Object: object.Draw(t, "b")}
		paths := differingFields(a, b, 1000)
		if same := reflect.DeepEqual(a, b); same != (len(paths) == 0) {
			t.Fatalf("same %v, paths %q", same, paths)
		}
		for _, text := range paths {
			if _, err := fieldpath.Parse(text); err != nil {
				t.Fatalf("%q is no path: %v", text, err)
			}
		}
		if some := differingFields(a, b, 2); len(some) > 2 {
			t.Fatalf("%d of at most 2", len(some))
		}
	})
}

func BenchmarkObject(b *testing.B) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for i := range 100 {
		_ = unstructured.SetNestedField(o.Object, "some text of the length that values have", fmt.Sprint("spec", i%10), fmt.Sprint("field", i))
	}
	x, y := side[object]{object: o}, side[object]{object: o.DeepCopy()}
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			x.same(y)
		}
	})
	b.Run("digest", func(b *testing.B) {
		for b.Loop() {
			_, _ = x.sum()
		}
	})
}
