package main

import (
	"slices"
	"testing"
	"time"
)

// Every trial runs, with few objects and for a short time, and measures what its
// targets are about.
func TestTrialsMeasureWhatTheirTargetsNeed(t *testing.T) {
	full := effort
	defer func() { effort = full }()
	effort.lap, effort.turns, effort.updates, effort.busy = 50*time.Microsecond, 1, 5, 10*time.Millisecond
	for _, tr := range []trial{storeUpdate(1_000), storeRead(2_000), storeReplace(2_000), storeSize(2_000), fieldPathTrial} {
		measures := map[string][]string{}
		for _, r := range tr.entries {
			m := newMeter()
			if err := r.run(t.Context(), m); err != nil {
				t.Fatalf("%s, %s: %v", tr.name, r.name, err)
			}
			for _, figure := range m.result {
				measures[r.name] = append(measures[r.name], figure.Name)
			}
			if _, ok := tr.runner(r.against); !ok && r.against != "" {
				t.Errorf("%s: %s is compared with %q, which does not run", tr.name, r.name, r.against)
			}
		}
		if len(tr.targets) == 0 {
			t.Errorf("%s: no targets", tr.name)
		}
		for _, target := range tr.targets {
			if !slices.Contains(measures[target.Entry], target.Measure) || target.AtMost <= 0 ||
				target.Against != "" && !slices.Contains(measures[target.Against], target.Measure) {
				t.Errorf("%s: target %+v names what is not measured", tr.name, target)
			}
		}
	}
}
