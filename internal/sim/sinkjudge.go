package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn"
)

// judgePair checks that a sink's content is a state that the server had at the sink's
// version.
func (d *day) judgePair(who string, at tarn.Position, content State) {
	if !at.Complete || at.Version == "" || d.count(unreliable) > 0 {
		return
	}
	for _, m := range slices.Backward(d.server.Past()) {
		if strconv.Itoa(m.Version) == string(at.Version) && content.equal(m.State) {
			return
		}
	}
	d.record.violate(who, "atomic position", "at version %s it holds %v, which the server never did", at.Version, content)
}

// judgeSinks checks, after the calm, that each sink has what the server has.
func (d *day) judgeSinks(r *tarn.Replica[*Object], sinks []*modelSink) {
	h := r.Health()
	if h.Err != nil || !h.Synced || h.State != tarn.StateWatching {
		d.record.violate("copy", "convergence", "a while after the troubles it is not well: %s", h)
	}
	bad := map[tarn.Key]bool{}
	for _, b := range h.Bad {
		bad[b.Key] = true
	}
	without := func(s State) State {
		s = maps.Clone(s)
		maps.DeleteFunc(s, func(key tarn.Key, _ *Object) bool { return bad[key] })
		return s
	}
	want := without(d.server.State())
	for i, s := range sinks {
		s.mu.Lock()
		content := without(s.content)
		s.mu.Unlock()
		if !content.equal(want) {
			d.record.violate(s.name, "convergence", "holds %v, the server %v", content, want)
		}
		if sink := h.Sinks[i]; sink.Err != nil || sink.Pending > 0 || sink.Version != h.Version {
			d.record.violate(s.name, "convergence", "it has not caught up: %s, %v", sink, sink.Err)
		}
	}
}

// past is what happened on the server in one order: a restore begins another order, with
// what was before it in common.
type past []pastChange

type pastChange struct {
	version int
	key     tarn.Key
	gone    bool
	object  *Object
}

func (d *day) pasts() (all []past) {
	var now past
	for _, m := range d.server.Past() {
		verb, rest, _ := strings.Cut(m.What, " ")
		name, _, _ := strings.Cut(rest, "@")
		switch verb {
		case "put", "delete":
			now = append(now, pastChange{m.Version, tarn.Key(name), verb == "delete", m.State[tarn.Key(name)]})
		case "restore":
			all = append(all, now)
			end := slices.IndexFunc(now, func(h pastChange) bool { return h.version > m.Version })
			if end >= 0 {
				now = slices.Clone(now[:end])
			}
		}
	}
	return append(all, now)
}

// judgeCommits checks that a sink received each state once, or learned which ones it
// did not receive.
func (d *day) judgeCommits(s *modelSink) {
	if !s.policy.EveryState || d.count(unreliable) > 0 {
		return
	}
	pasts := d.pasts()
	for i, c := range s.commits {
		if c.from.Version == "" {
			continue // the first one, or the sink was empty
		}
		if c.from.Epoch != c.to.Epoch || c.to.Version.OlderThan(c.from.Version) {
			if !slices.ContainsFunc(c.batch.Gaps, func(g tarn.Gap) bool { return g.Cause == tarn.GapRewound }) {
				d.record.violate(s.name, "gaps are known", "commit %d goes back from %+v to %+v without a gap", i, c.from, c.to)
			}
			continue
		}
		if slices.ContainsFunc(c.batch.Gaps, func(g tarn.Gap) bool { return g.Cause == tarn.GapRewound }) {
			continue
		}
		var problem string
		for _, p := range slices.Backward(pasts) {
			if problem = c.misses(p); problem == "" {
				break
			}
		}
		if problem != "" {
			d.record.violate(s.name, "exactly once", "commit %d from %s to %s: %s: %s", i, c.from.Version, c.to.Version, problem, showChanges(c.batch))
		}
	}
}

// misses says which states of a past the commit lacks or has twice; "" if none.
func (c commit) misses(p past) string {
	from, _ := strconv.Atoi(string(c.from.Version))
	to, _ := strconv.Atoi(string(c.to.Version))
	covered := func(v int) bool {
		return slices.ContainsFunc(c.batch.Gaps, func(g tarn.Gap) bool {
			after, _ := strconv.Atoi(string(g.From))
			until, _ := strconv.Atoi(string(g.To))
			// A copy whose version was not known has come to any.
			return v > after && (v <= until || g.To == "")
		})
	}
	missing := slices.ContainsFunc(c.batch.Gaps, func(g tarn.Gap) bool { return g.Cause != tarn.GapBad })
	given := map[tarn.Key][]tarn.Change[*Object]{}
	for _, change := range c.batch.Changes {
		given[change.Key] = append(given[change.Key], change)
	}
	has, poison := maps.Clone(c.before), map[tarn.Key]bool{}
	for _, h := range p {
		wasPoison := poison[h.key]
		poison[h.key] = h.object != nil && h.object.Poison
		if h.version <= from || h.version > to {
			continue
		}
		if poison[h.key] {
			if !covered(h.version) {
				return "lacks the bad state " + string(h.key) + "@" + strconv.Itoa(h.version) + " without a gap"
			}
			continue
		}
		if h.gone && wasPoison && missing {
			continue // a copy that was read meanwhile does not have it
		}
		_, present := has[h.key]
		if h.gone && !present {
			continue // the sink never had it
		}
		delete(has, h.key)
		if !h.gone {
			has[h.key] = h.object
		}
		// What a gap covers may have been given or not.
		if i := slices.IndexFunc(given[h.key], func(g tarn.Change[*Object]) bool { return string(g.Version) == strconv.Itoa(h.version) }); i >= 0 {
			if i > 0 && !missing && !c.batch.Whole {
				return "out of order: " + string(h.key)
			}
			given[h.key] = slices.Delete(given[h.key], i, i+1)
		} else if !covered(h.version) {
			return "lacks " + string(h.key) + "@" + strconv.Itoa(h.version)
		}
	}
	if missing || c.batch.Whole {
		return ""
	}
	for key, rest := range given {
		for _, g := range rest {
			// A copy that started over and cannot take an object does not have it, and
			// neither does the sink.
			if !g.Rewound && !(g.Missed && !c.to.Complete) {
				return "has once too often " + string(key) + "@" + string(g.Version)
			}
		}
	}
	return ""
}
