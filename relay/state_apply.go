package relay

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// part is some changes of a batch: one after the other, or a gap.
type part struct {
	changes []tarn.Change[Object]
	gap     bool
	// to is the version after the gap.
	to int64
	// whole says that the changes are all objects there are.
	whole bool
}

// divide separates the changes of a batch into those that were seen one by one, and those
// that bridge a gap. The changes of a gap are next to each other: deletes that were found
// by a list, then the objects whose version lies in the gap.
//
// If they cannot be distinguished, the whole batch is one gap. That costs a client that
// resumes in the gap a list, and is never wrong.
func divide(b tarn.Batch[Object], to int64) (parts []part) {
	gaps, clear := gapsOf(b)
	if !clear {
		return []part{{changes: b.Changes, gap: true, to: to, whole: b.Whole}}
	}
	rest := b.Changes
	for _, g := range gaps {
		n := slices.IndexFunc(rest, func(c tarn.Change[Object]) bool { return c.Missed || versionOf(c.Version) > g.from })
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			parts = append(parts, part{changes: rest[:n]})
		}
		rest = rest[n:]
		n = slices.IndexFunc(rest, func(c tarn.Change[Object]) bool { return !c.Missed && versionOf(c.Version) > g.to })
		if n < 0 {
			n = len(rest)
		}
		parts = append(parts, part{changes: rest[:n], gap: true, to: g.to})
		rest = rest[n:]
	}
	if len(rest) > 0 {
		parts = append(parts, part{changes: rest})
	}
	return parts
}

type versionRange struct{ from, to int64 }

// gapsOf returns the gaps of a batch in order; false if the changes in them cannot be
// distinguished from others.
func gapsOf(b tarn.Batch[Object]) (gaps []versionRange, clear bool) {
	for _, g := range b.Gaps {
		r := versionRange{versionOf(g.From), versionOf(g.To)}
		if g.Cause != tarn.GapRead || r.from == 0 || r.to < r.from || len(gaps) > 0 && gaps[len(gaps)-1].to > r.from {
			return nil, false
		}
		gaps = append(gaps, r)
	}
	missed := slices.ContainsFunc(b.Changes, func(c tarn.Change[Object]) bool { return c.Missed })
	return gaps, !b.Whole && !(missed && len(gaps) == 0)
}

// versionOf is 0 for what is not a number.
func versionOf(v tarn.Version) int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// apply changes content and log, and wakes the watches that it concerns.
func (s *state) apply(p part, heard time.Time) {
	if p.gap {
		s.applyGap(p, heard)
		return
	}
	for _, c := range p.changes {
		e := &apiserver.Event{Type: watch.Modified, Version: versionOf(c.Version), Heard: c.Heard, Object: c.Object}
		if e.Heard.IsZero() {
			e.Heard = heard
		}
		if c.Type == tarn.Delete {
			e.Type = watch.Deleted
			if e.Old = s.content.set(string(c.Key), nil); e.Old == nil {
				continue // a commit that was made again
			}
		} else if e.Old = s.content.set(string(c.Key), c.Object); e.Old == nil {
			e.Type = watch.Added
		}
		s.log.append(e)
		s.version = max(s.version, e.Version)
		s.watchers.notify(e, s.log.end()-1)
	}
}

// applyGap appends a gap from the version that was reached to the one after it.
func (s *state) applyGap(p part, heard time.Time) {
	next := map[string]*apiserver.Object{}
	if p.whole {
		for _, o := range s.content.objects {
			next[o.Key()] = nil
		}
	}
	for _, c := range p.changes {
		next[string(c.Key)] = c.Object
		if c.Type == tarn.Delete {
			next[string(c.Key)] = nil
		}
	}
	gap := &apiserver.Gap{From: s.version}
	for key, o := range next {
		old := s.content.get(key)
		if old == o || old != nil && o != nil && old.UID() == o.UID() && old.Version() == o.Version() {
			continue
		}
		gap.Changes = append(gap.Changes, &apiserver.GapChange{Old: old, New: o})
	}
	s.content.replace(next)
	slices.SortFunc(gap.Changes, func(a, b *apiserver.GapChange) int {
		return cmp.Or(cmp.Compare(newVersion(a), newVersion(b)), cmp.Compare(gapKey(a), gapKey(b)))
	})
	to := max(p.to, s.version)
	for _, c := range gap.Changes {
		to = max(to, newVersion(c))
	}
	if to == gap.From && len(gap.Changes) == 0 {
		return
	}
	s.log.append(&apiserver.Event{Version: to, Heard: heard, Gap: gap})
	s.version = to
	s.gaps++
	s.watchers.wakeAll(s.log.end() - 1)
}

func newVersion(c *apiserver.GapChange) int64 {
	if c.New == nil {
		return 0
	}
	return c.New.Version()
}
