package tarn_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tarnproject/tarn"
)

// Positions are a map from section to position, whatever is done to them.
func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p tarn.Positions
		model := map[string]tarn.Position{}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			at := tarn.Position{
				Section:  rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "section"),
				Epoch:    rapid.SampledFrom([]string{"", "later"}).Draw(t, "epoch"),
				Version:  tarn.Version(strconv.Itoa(rapid.IntRange(8, 11).Draw(t, "version"))),
				Complete: rapid.Bool().Draw(t, "complete"),
			}
			before, kept := p.Clone(), p.All()
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				p.Reset(at)
				model = map[string]tarn.Position{at.Section: at}
			case 1:
				p.Move(tarn.Position{Section: at.Section})
				delete(model, at.Section)
			default:
				p.Move(at)
				model[at.Section] = at
			}
			if !slices.Equal(before.All(), kept) {
				t.Fatal("a clone changed with what it was made of")
			}
			var want []tarn.Position
			oldest := tarn.Version("")
			for _, section := range slices.Sorted(maps.Keys(model)) {
				x := model[section]
				if want = append(want, x); oldest == "" || x.Version.OlderThan(oldest) {
					oldest = x.Version
				}
			}
			if diff := cmp.Diff(want, p.All()); diff != "" || p.Oldest() != oldest {
				t.Fatalf("the oldest is %q, want %q; all: %s", p.Oldest(), oldest, diff)
			}
		}
	})
	var p tarn.Positions
	p.Move(tarn.Position{Section: "a", Version: "5"})
	p.Move(tarn.Position{Section: "b", Version: "of another kind"})
	if v := p.Oldest(); v != "" {
		t.Errorf("of versions that cannot be compared %q is the oldest", v)
	}
}
