package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/faults"
)

// judge checks the promises that must hold after the calm.
func (d *day) judge() {
	h := d.copy.health()
	if h.Err != nil || !h.Synced || h.State != tarn.StateWatching {
		d.record.violate("copy", "convergence", "a while after the troubles it is not well: %s", h)
	}
	bad := map[tarn.Key]bool{}
	for _, b := range h.Bad {
		bad[b.Key] = true
	}
	want := map[tarn.Key]tarn.Version{}
	for key, o := range d.server.State() {
		if o.Poison && !bad[key] {
			d.record.violate("copy", "one bad object is one bad object", "%s is bad and not marked", o)
		}
		if !bad[key] {
			want[key] = o.Version
		}
	}
	got := d.copy.content()
	for key := range bad {
		delete(got, key)
	}
	if !maps.Equal(got, want) {
		d.record.violate("copy", "convergence", "holds %v, the server %v", got, want)
	}
	d.copy.followers(func(f *follower, lag tarn.Lag) {
		believes := f.state()
		for key := range bad {
			delete(believes, key)
		}
		if lag.Pending == 0 && !maps.Equal(believes, want) {
			d.record.violate(f.name, "convergence", "believes %v, the server has %v", believes, want)
		}
		if lag.Pending > 0 && f.keepsUp() {
			d.record.violate(f.name, "convergence", "%d changes still wait for it", lag.Pending)
		}
	})
}

// unreliable holds the faults after which the content may lack something until the next
// whole state, without a defect of the copy.
var unreliable = []faults.Kind{faults.Reorder, faults.Undecodable, faults.Bad, faults.Corrupt, faults.Oversize}

// applied checks each state that is written to the copy's store.
func (d *day) applied(v tarn.Version, content map[tarn.Key]tarn.Version) {
	d.record.note("store", "at %s: %v", v, content)
	if v == "" || d.count(unreliable) > 0 {
		return
	}
	bad := map[tarn.Key]bool{}
	for _, b := range d.copy.health().Bad {
		bad[b.Key] = true
	}
	for _, m := range slices.Backward(d.server.Past()) {
		if strconv.Itoa(m.Version) == string(v) && sameBut(content, m.State, bad) {
			return
		}
	}
	d.record.violate("store", "atomic version", "at version %s it holds %v, which the server never did", v, content)
}

// sameBut compares a content with a state, leaving out what is bad.
func sameBut(content map[tarn.Key]tarn.Version, s State, bad map[tarn.Key]bool) bool {
	n := 0
	for key, o := range s {
		if bad[key] || o.Poison {
			continue
		}
		if content[key] != o.Version {
			return false
		}
		n++
	}
	for key := range content {
		if bad[key] {
			continue
		}
		if o, ok := s[key]; ok && o.Poison {
			continue // its last good state
		}
		n--
	}
	return n == 0
}

// late holds the faults after which the last contact may be about an old state: an event
// came late, or none came while the copy was catching up.
var late = []faults.Kind{faults.Delay, faults.Lag, faults.Stall, faults.CutEnd}

// count is the number of faults of some kinds so far.
func (d *day) count(kinds []faults.Kind) int {
	counts := d.plan.History().Counts()
	n := 0
	for _, kind := range kinds {
		n += counts[kind]
	}
	return n
}

// checkBacklog checks how much waits for each follower.
func (d *day) checkBacklog() {
	d.copy.followers(func(f *follower, lag tarn.Lag) {
		// Folded, at most two changes for each of ten keys; before that the bound;
		// plus the changes that the follower has already taken.
		if limit := max(backlogBound, 2*10) + 40; lag.Pending > limit {
			d.record.violate(f.name, "bounded memory", "%d changes wait, allowed are %d", lag.Pending, limit)
		}
	})
}

// backlogBound is small, so that changes are folded often.
const backlogBound = 8

// checkFreshness compares the copy's content with its last contact.
func (d *day) checkFreshness() {
	mix := d.plan.Mix()
	for _, kind := range slices.Concat(late, unreliable) {
		if mix[kind] > 0 {
			return
		}
	}
	h := d.copy.health()
	if !h.Synced || h.Rewinds > 0 || h.Err != nil || h.State != tarn.StateWatching {
		return // Health reports that it is not following
	}
	known, err := strconv.Atoi(string(d.copy.version()))
	if err != nil {
		return
	}
	then := 0
	for _, m := range d.server.Past() {
		if m.What == "restore" {
			return
		}
		if m.At.Before(h.LastContact.Add(-time.Millisecond)) {
			then = m.Version
		}
	}
	if known < then {
		d.record.violate("copy", "freshness is known", "it heard at %s, when the server was at %d, and knows only %d", h.LastContact.Format(time.TimeOnly), then, known)
	}
}
