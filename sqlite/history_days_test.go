package sqlite

import (
	"encoding/json"
	"strconv"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/internal/sim"
)

// verifyLog looks at the history that a process left: it is sound, agrees with the content,
// has only states that the server had, and lacks none but what a gap names.
func (d *day) verifyLog(dir string, db *DB, at tarn.Version, content map[tarn.Key]tarn.Version) {
	d.t.Helper()
	if !d.opts.History.on() || d.only || at == "" {
		return
	}
	report, err := Check(d.t.Context(), dir, nil)
	must(d.t, err)
	for _, f := range report.Findings {
		d.t.Errorf("check: %s", f)
	}
	log := db.Log("objects")
	bounds, err := log.Bounds(d.t.Context())
	if err != nil {
		d.t.Errorf("what was left has no history: %v", err)
		return
	}
	d.seen["with history"]++
	living := map[tarn.Key]tarn.Version{}
	for e, err := range log.AsOf(d.t.Context(), changelog.Place{Seq: bounds.Last}) {
		must(d.t, err)
		living[e.Key] = d.had(e).Version
	}
	for key, v := range content {
		if living[key] != v {
			d.t.Errorf("%s is at %s in the content, and at %q in the log", key, v, living[key])
		}
		delete(living, key)
	}
	if len(living) > 0 {
		d.t.Errorf("the log has %v, and the content does not", living)
	}
	d.complete(log, bounds, at)
}

// had checks that the server had a state of the log.
func (d *day) had(e changelog.Entry) *sim.Object {
	o := &sim.Object{}
	must(d.t, json.Unmarshal(e.Object, o))
	for _, m := range d.server.Past() {
		if s := m.State[e.Key]; s != nil && s.Version == o.Version && s.Write == o.Write {
			return o
		}
	}
	if d.exact {
		d.t.Errorf("the log has %v, which the server never had", o)
	}
	return o
}

// complete checks that the log has every state that the server had since the log began, but
// for those that a gap names.
func (d *day) complete(log changelog.Log, bounds changelog.Bounds, at tarn.Version) {
	if !d.exact || d.restores {
		return
	}
	seen, gaps := map[int]bool{}, []*changelog.Gap{}
	for e, err := range log.After(d.t.Context(), bounds.First) {
		must(d.t, err)
		if e.Gap != nil {
			d.seen["gap "+string(e.Gap.Cause)]++
			gaps = append(gaps, e.Gap)
			continue
		}
		n, _ := strconv.Atoi(string(e.Version))
		seen[n] = true
	}
	past, last := d.server.Past(), mustInt(at)
	for i := 1; i < len(past); i++ {
		v := past[i].Version
		if v == past[i-1].Version || v > last || v <= d.logBegan {
			continue
		}
		missing := !seen[v]
		for _, g := range gaps {
			if mustInt(g.From) < v && v <= mustInt(g.To) {
				missing = false
			}
		}
		if missing {
			d.t.Errorf("the log lacks what happened at version %d (%s), and no gap of %v names it", v, past[i].What, gaps)
			return
		}
	}
}

func mustInt(v tarn.Version) int {
	n, _ := strconv.Atoi(string(v))
	return n
}
