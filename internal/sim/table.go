package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// lines is the whole day in order of time: the server's actions, the faults of the wire,
// and what the copy and its followers saw.
func (d *day) lines() []Line {
	all := append([]Line(nil), d.record.lines...)
	past := d.server.Past()
	for _, m := range past {
		all = append(all, Line{m.At, "server", fmt.Sprintf("%s, now at %d: %s", m.What, m.Version, m.State)})
	}
	born := past[0].At
	for _, f := range d.plan.History() {
		all = append(all, Line{born.Add(f.At), "wire", fmt.Sprintf("%s (%s) %s", f.Kind, f.Of, f.Detail)})
	}
	slices.SortStableFunc(all, func(a, b Line) int { return a.At.Compare(b.At) })
	return all
}

// Table is the day as a table for people to read.
func (r *Report) Table() string {
	var b strings.Builder
	if len(r.Lines) == 0 {
		return ""
	}
	born := r.Lines[0].At
	for _, l := range r.Lines {
		fmt.Fprintf(&b, "%10s  %-11s %s\n", l.At.Sub(born).Round(time.Millisecond), l.Who, l.What)
	}
	return b.String()
}

// String names the day and its violations.
func (r *Report) String() string {
	kind := "replica"
	if r.Config.Informer {
		kind = "informer"
	}
	if r.Config.Sinks {
		kind = "sinks"
	}
	return fmt.Sprintf("seed %d (%s, %d writes): %d faults, %d violations\n  %s",
		r.Config.Seed, kind, r.Config.Writes, len(r.Faults), len(r.Violations), strings.Join(r.Violations, "\n  "))
}
