package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/verify"
)

// mirrorLines prints the state of a mirror without a terminal: progress, each table
// when it is synced, errors when they begin and end, bad objects, differences from
// the server, and now and then the state of all tables.
type mirrorLines struct {
	out      io.Writer
	mirror   *mirror.Mirror
	begun    time.Time
	interval time.Duration

	known map[string]*tableNews
	told  time.Time
	all   bool
}

// tableNews is what has been printed about a table.
type tableNews struct {
	loaded bool
	synced bool
	failed string
	bad    int
	rounds int
}

// run prints until ctx ends.
func (p *mirrorLines) run(ctx context.Context) {
	p.told = p.begun
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
		p.news(now, t)
	}
	state := progressOf(p.mirror, now.Sub(p.begun))
	if state.done() && !p.all {
		p.all = true
		p.say(now, "synced %s of %s in %s", plural(state.received, "object"), plural(state.tables, "resource"), seconds(state.elapsed))
	}
	if now.Sub(p.told) < p.every() {
		return
	}
	p.told = now
	if !p.all {
		p.say(now, "syncing: %s", state)
		return
	}
	for _, t := range p.mirror.Tables() {
		s := t.Status()
		p.say(now, "%s: %s, %s, %s, %s old", t.Resource().Name(), plural(s.Objects, "object"), rate(s.EventsPerSecond), s.Health.State, seconds(s.Health.Age))
	}
}

// every is more often while there is progress to be seen.
func (p *mirrorLines) every() time.Duration {
	if p.all {
		return p.interval
	}
	return min(2*time.Second, p.interval)
}

// news prints what is new about a table.
func (p *mirrorLines) news(now time.Time, t *mirror.Table) {
	name, status := t.Resource().Name(), t.Status()
	told := p.known[name]
	if told == nil {
		if p.known == nil {
			p.known = map[string]*tableNews{}
		}
		told = &tableNews{}
		p.known[name] = told
	}
	if h := status.Health; h.FromDisk && !told.loaded {
		told.loaded = true
		p.say(now, "%s: from disk, %s old, %s", name, seconds(h.Age), plural(status.Objects, "object"))
	}
	if status.Health.Synced && !told.synced {
		told.synced = true
		p.say(now, "%s: synced, %s", name, plural(status.Objects, "object"))
	}
	if bad := status.Health.BadCount; bad != told.bad {
		told.bad = bad
		p.say(now, "%s: %s that could not be taken", name, plural(bad, "object"))
	}
	if verified := t.Verified(); verified.Rounds > told.rounds {
		told.rounds = verified.Rounds
		if round := verified.Last; round.Result.Verdict != verify.Equal || round.Passed > 0 {
			p.say(now, "compared with the server: %s", round)
		}
	}
	failure := ""
	if err := status.Health.Err; err != nil {
		failure = strings.TrimPrefix(brief(err), name+": ")
	} else if d := status.Health.Disk; d != nil && d.Err != nil {
		failure = "in memory only: " + brief(d.Err)
	}
	if failure == told.failed {
		return
	}
	told.failed = failure
	if failure == "" {
		p.say(now, "%s: recovered", name)
		return
	}
	p.say(now, "%s: %s", name, failure)
}

func (p *mirrorLines) say(now time.Time, format string, args ...any) {
	fmt.Fprintf(p.out, "%s %s\n", stamp(now), term.Clean(fmt.Sprintf(format, args...)))
}
