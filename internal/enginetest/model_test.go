package enginetest

import (
	"testing"

	"github.com/tarnproject/tarn"
)

// Each way in which an engine can be wrong is found.
func TestCompare(t *testing.T) {
	a1, a2, b3, a4 := State{Key: "a", Version: "9"}, State{Key: "a", Version: "10"}, State{Key: "b", Version: "11"}, State{Key: "a", Version: "12", Deleted: true}
	var m Model
	for _, s := range []State{a1, a2, b3, a4} {
		m.Add(s)
	}
	gap := []tarn.Gap{{From: "9", To: "10"}}
	inferred := State{Key: "b", Version: "11", Deleted: true, Inferred: true}
	for name, c := range map[string]struct {
		seen                              []State
		gaps                              []tarn.Gap
		lost, repeated, disordered, other int
		marked                            int
	}{
		"all":                    {seen: []State{a1, a2, b3, a4}},
		"objects beside another": {seen: []State{b3, a1, a2, a4, inferred}},
		"one lost":               {seen: []State{a1, b3, a4}, lost: 1},
		"one marked":             {seen: []State{a1, b3, a4}, gaps: gap, marked: 1},
		"the gap is another":     {seen: []State{a1, a2, a4}, gaps: gap, lost: 1},
		"an open gap":            {seen: []State{a4}, gaps: []tarn.Gap{{To: "11"}}, marked: 3},
		"twice":                  {seen: []State{a1, a2, a2, b3, a4}, repeated: 1},
		"back":                   {seen: []State{a2, a1, b3, a4}, disordered: 1},
		"invented":               {seen: []State{a1, a2, b3, a4, {Key: "c", Version: "9"}}, other: 1},
		"no delete":              {seen: []State{a1, a2, b3}, lost: 1},
	} {
		r := m.Compare(c.seen, c.gaps)
		if len(r.Lost) != c.lost || len(r.Repeated) != c.repeated || len(r.Disordered) != c.disordered || len(r.Invented) != c.other || r.Marked != c.marked ||
			r.Good() != (c.lost+c.repeated+c.disordered+c.other == 0) {
			t.Errorf("%s: %s", name, r)
		}
	}
	if p := m.Present(); len(p) != 1 || p["b"] != "11" || m.Last() != "12" {
		t.Errorf("the present is %v", p)
	}
}
