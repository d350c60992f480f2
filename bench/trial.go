package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarnproject/tarn/bench/report"
)

// A trial puts contenders to the same work with no server around: what is
// measured is a part, such as the store, and not the whole copy.
type trial struct {
	name, doc string
	objects   int
	entries   []runner
	targets   []report.Target
	// extra trials are held only if -run names them: the documents do not show them.
	extra bool
}

// runner is a contender in a trial.
type runner struct {
	name string
	// against is the runner with which it is compared.
	against string
	run     func(context.Context, *meter) error
}

func (t trial) runner(name string) (runner, bool) {
	i := slices.IndexFunc(t.entries, func(r runner) bool { return r.name == name })
	if i < 0 {
		return runner{}, false
	}
	return t.entries[i], true
}

// trials in the order in which they are held.
var trials = slices.Concat(storeTrials, []trial{fieldPathTrial})

// effort is for how long trials measure; a test of them wants less.
var effort = struct {
	// lap is the least time for which something quick is repeated.
	lap time.Duration
	// turns is how often being alone and not being alone alternate. In each,
	// updates come at a pace, for so long at most, and then without rest.
	turns, updates int
	paced, busy    time.Duration
}{15 * time.Millisecond, 2, 100, 1500 * time.Millisecond, time.Second}

// within limits figures of one runner that are compared with no other.
func within(runner string, atMost map[string]float64) []report.Target {
	return limits(runner, "", atMost)
}

// runTrials has the runners take turns, round by round, each in a process of its
// own.
func (p *parent) runTrials(ctx context.Context) {
	for _, t := range p.trials {
		held := &report.Race{Name: t.name, Pods: t.objects, Targets: t.targets}
		for _, r := range t.entries {
			held.Entries = append(held.Entries, report.Entry{Name: r.name, Against: r.against, Again: r.name == again(r.against)})
		}
		for round := range p.count {
			for i, r := range t.entries {
				if result, ok := p.child(ctx, task{Scenario: t.name, Contender: r.name}, round, p.count); ok {
					held.Entries[i].Rounds = append(held.Entries[i].Rounds, result)
				}
			}
		}
		if ctx.Err() != nil {
			return
		}
		held.Table(p.out)
		p.file.Races = append(p.file.Races, held)
	}
}

func (t trial) describe() (lines []string) {
	lines = append(lines, t.name, "    "+t.doc)
	for _, r := range t.entries {
		lines = append(lines, fmt.Sprintf("        %s", r.name))
	}
	return lines
}
