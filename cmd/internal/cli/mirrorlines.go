package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/verify"
)

// mirrorLines prints the state of a mirror without a terminal: progress, each table when it
// is synced, errors when they begin and end, bad objects, differences from the server, and
// sometimes the state of all tables.
type mirrorLines struct {
	out      io.Writer
	mirror   *mirror.Mirror
	begun    time.Time
	interval time.Duration
	// engine is what the mirror is written to, empty for the disk.
	engine string

	past        pastText
	printed     map[string]*printedState
	lastPrinted time.Time
	all         bool
}

// printedState is what has been printed about a table.
type printedState struct {
	loaded bool
	synced bool
	failed string
	bad    int
	gaps   int64
	rounds int
}

// run prints until ctx ends.
func (p *mirrorLines) run(ctx context.Context) {
	p.lastPrinted = p.begun
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			p.step(now)
		case <-ctx.Done():
			return
		}
	}
}

func (p *mirrorLines) step(now time.Time) {
	for _, t := range p.mirror.Tables() {
		p.printTable(now, t)
	}
	state := progressOf(p.mirror, now.Sub(p.begun))
	if state.done() && !p.all {
		p.all = true
		p.printLine(now, "synced %s of %s in %s", plural(state.received, "object"), plural(state.tables, "resource"), seconds(state.elapsed))
	}
	if now.Sub(p.lastPrinted) < p.every() {
		return
	}
	p.lastPrinted = now
	if !p.all {
		p.printLine(now, "syncing: %s", state)
		return
	}
	for _, t := range p.mirror.Tables() {
		s := t.Status()
		p.printLine(now, "%s: %s, %s, %s, %s old%s", t.Resource().Name(), plural(s.Objects, "object"), rate(s.EventsPerSecond), s.Health.State, seconds(s.Health.Age), p.written(s))
	}
	if text := p.past.of(p.mirror, now); text != "" {
		p.printLine(now, "%s", text)
	}
}

// every is the interval; it is shorter while there is progress to show.
func (p *mirrorLines) every() time.Duration {
	if p.all {
		return p.interval
	}
	return min(2*time.Second, p.interval)
}

// printTable prints what has changed about a table since it was last printed.
func (p *mirrorLines) printTable(now time.Time, t *mirror.Table) {
	name, status := t.Resource().Name(), t.Status()
	shown := p.printed[name]
	if shown == nil {
		if p.printed == nil {
			p.printed = map[string]*printedState{}
		}
		shown = &printedState{}
		p.printed[name] = shown
	}
	if h := status.Health; h.FromDisk && !shown.loaded {
		shown.loaded = true
		p.printLine(now, "%s: from %s, %s old, %s", name, p.place(), seconds(h.Age), plural(status.Objects, "object"))
	}
	if status.Health.Synced && !shown.synced {
		shown.synced = true
		p.printLine(now, "%s: synced, %s", name, plural(status.Objects, "object"))
	}
	if bad := status.Health.BadCount; bad != shown.bad {
		shown.bad = bad
		p.printLine(now, "%s: %s that could not be taken", name, plural(bad, "object"))
	}
	if verified := t.Verified(); verified.Rounds > shown.rounds {
		shown.rounds = verified.Rounds
		if round := verified.Last; round.Result.Verdict != verify.Equal || round.Passed > 0 {
			p.printLine(now, "compared with the server: %s", round)
		}
	}
	failure := ""
	if err := status.Health.Err; err != nil {
		failure = strings.TrimPrefix(brief(err), name+": ")
	} else if d := status.Health.Disk; d != nil && d.Err != nil {
		failure = "in memory only: " + brief(d.Err)
	}
	if d := status.Health.Disk; p.engine != "" && d != nil && d.Gaps > shown.gaps {
		shown.gaps = d.Gaps
		p.printLine(now, "%s: %s noted in %s: states are missing there, and it says which", name, plural(int(d.Gaps), "gap"), p.engine)
	}
	if failure == shown.failed {
		return
	}
	shown.failed = failure
	if failure == "" {
		p.printLine(now, "%s: recovered", name)
		return
	}
	p.printLine(now, "%s: %s", name, failure)
}

// place names where the mirror is written to.
func (p *mirrorLines) place() string { return cmp.Or(p.engine, "disk") }

// written says how far an engine has caught up.
func (p *mirrorLines) written(s mirror.Status) string {
	if p.engine == "" || s.Health.Disk == nil {
		return ""
	}
	return "; " + s.Health.Disk.String()
}

func (p *mirrorLines) printLine(now time.Time, format string, args ...any) {
	fmt.Fprintf(p.out, "%s %s\n", stamp(now), term.Clean(fmt.Sprintf(format, args...)))
}
