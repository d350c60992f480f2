package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/mirror"
)

// mirrorLines prints how a mirror is doing where there is no terminal: progress,
// each table when it is synced, errors when they begin and end, and now and then
// where all tables are.
type mirrorLines struct {
	out      io.Writer
	mirror   *mirror.Mirror
	begun    time.Time
	interval time.Duration

	synced map[string]bool
	loaded map[string]bool
	failed map[string]string
	told   time.Time
	all    bool
}

// run prints until ctx ends.
func (p *mirrorLines) run(ctx context.Context) {
	p.synced, p.loaded, p.failed, p.told = map[string]bool{}, map[string]bool{}, map[string]string{}, p.begun
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
		p.say(now, "%s: %s, %s, heard %s ago, %s", t.Resource().Name(), plural(s.Objects, "object"), rate(s.EventsPerSecond), seconds(s.Health.Age), s.Health.State)
	}
}

// every is more often while there is progress to be seen.
func (p *mirrorLines) every() time.Duration {
	if p.all {
		return p.interval
	}
	return min(2*time.Second, p.interval)
}

// news tells what is new about a table.
func (p *mirrorLines) news(now time.Time, t *mirror.Table) {
	name, status := t.Resource().Name(), t.Status()
	if h := status.Health; h.FromDisk && !p.loaded[name] {
		p.loaded[name] = true
		p.say(now, "%s: from disk, %s old, %s", name, seconds(h.Age), plural(status.Objects, "object"))
	}
	if status.Health.Synced && !p.synced[name] {
		p.synced[name] = true
		p.say(now, "%s: synced, %s", name, plural(status.Objects, "object"))
	}
	failure := ""
	if err := status.Health.Err; err != nil {
		failure = brief(err)
	} else if d := status.Health.Disk; d != nil && d.Err != nil {
		failure = "in memory only: " + brief(d.Err)
	}
	if failure == p.failed[name] {
		return
	}
	p.failed[name] = failure
	if failure == "" {
		p.say(now, "%s: well again", name)
		return
	}
	p.say(now, "%s: %s", name, failure)
}

func (p *mirrorLines) say(now time.Time, format string, args ...any) {
	fmt.Fprintf(p.out, "%s %s\n", stamp(now), term.Clean(fmt.Sprintf(format, args...)))
}
