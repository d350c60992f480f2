package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// watchView draws tables that change.
type watchView struct {
	live   *term.Live
	tables []*liveTable
}

func newWatchView(live *term.Live, all []*watched, opts *watchOptions) *watchView {
	v := &watchView{live: live}
	for _, w := range all {
		v.tables = append(v.tables, &liveTable{
			watched: w, rows: map[tarn.Key]*liveRow{}, wide: opts.format == "wide",
			withNamespace: opts.allNamespaces && w.resource.Namespaced,
		})
	}
	return v
}

// run draws until ctx ends.
func (v *watchView) run(ctx context.Context, changes <-chan rowChange) {
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	var drawn time.Time
	dirty := true
	for {
		select {
		case c := <-changes:
			for _, t := range v.tables {
				if t.watched == c.of {
					t.apply(c.change, time.Now())
				}
			}
			dirty = true
		case now := <-ticker.C:
			// Ages and the heading change by themselves; once a second is enough for them.
			if dirty || now.Sub(drawn) >= time.Second {
				_ = v.live.Draw(v.lines(now))
				drawn, dirty = now, false
			}
		case <-ctx.Done():
			return // with the last state on the screen
		}
	}
}

// lines returns what fits on the screen. Each table gets its share, and leaves what it does
// not need to the others.
func (v *watchView) lines(now time.Time) []term.Line {
	width, height := v.live.Size()
	if small, ok := tooSmallNow(width, height); ok {
		return small
	}
	var all []term.Line
	room := height - 1
	for i, t := range v.tables {
		share := room / (len(v.tables) - i)
		for j := i + 1; j < len(v.tables); j++ {
			if spare := room/(len(v.tables)-i) - v.tables[j].wants(); spare > 0 {
				share += spare
			}
		}
		lines := t.lines(now, share)
		room -= len(lines)
		all = append(all, lines...)
	}
	return all
}

// heading names a table and says how fresh it is.
func (t *liveTable) heading(now time.Time) term.Line {
	health := t.replica.Health()
	text := fmt.Sprintf("%s: %s, %s", t.resource.Name(), plural(t.count(), "object"), rate(t.events.rate(now, health.Events)))
	line := term.Line{{Text: text, Style: term.Bold}}
	state := term.Span{Text: ", " + health.State.String()}
	switch {
	case health.Err != nil:
		state = term.Span{Text: fmt.Sprintf(", as of %s ago: %s", seconds(health.Age), brief(health.Err)), Style: term.Red}
	case health.Synced:
		state.Text += ", " + seconds(health.Age) + " old"
	}
	return append(line, state)
}
