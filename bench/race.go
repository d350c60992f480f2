package main

import (
	"maps"
	"slices"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// A race has contenders copy the same pods from the same server, and measures
// what that costs them.
type race struct {
	name, doc string
	pods      podset.Kind
	entries   []entry
	targets   []report.Target
	// scaled races are also held with other sizes than the data's.
	scaled bool
	// largestOnly has the race held with the largest of the chosen sizes and with no
	// other.
	largestOnly bool
	// extra races are held only if -run names them: the documents do not show them.
	extra bool
	// targetSize is the size that the targets are for, 0 being the data's.
	targetSize int
	// paced has updates come a thousand a second, and not as fast as they are taken.
	paced bool
	// production has the server reached by TLS and HTTP/2, with lists compressed.
	production bool
}

// entry is a contender in a race; one may run twice under two names.
type entry struct {
	name, contender string
	// against is the entry with which it is compared.
	against string
}

func (r race) entry(name string) (entry, bool) {
	i := slices.IndexFunc(r.entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return r.entries[i], true
}

// formats are those that the race's server must have.
func (r race) formats() []replay.Format {
	var formats []replay.Format
	for _, e := range r.entries {
		if c := e.made(); !slices.Contains(formats, c.Format) {
			formats = append(formats, c.Format)
		}
	}
	return formats
}

// updateDivisor is the factor by which fewer updates are enough: JSON costs more
// and leaves more garbage.
func (r race) updateDivisor() int {
	if slices.Contains(r.formats(), replay.Custom) {
		return 4
	}
	return 1
}

// field makes entries of contenders: the first is what the others are compared
// with, and runs twice, so that the noise shows.
func field(base string, others ...string) []entry {
	entries := []entry{{base, base, ""}, {again(base), base, base}}
	for _, name := range others {
		entries = append(entries, entry{name, name, base})
	}
	return entries
}

// again names the second run of the same.
func again(name string) string { return name + " again" }

// limits makes targets of one entry.
func limits(entry, against string, atMost map[string]float64) []report.Target {
	var targets []report.Target
	for _, measure := range slices.Sorted(maps.Keys(atMost)) {
		targets = append(targets, report.Target{Entry: entry, Against: against, Measure: measure, AtMost: atMost[measure]})
	}
	return targets
}
