package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// mirrorView draws the state of a mirror: a progress bar while it syncs, then a summary, and
// below it a line for each table.
type mirrorView struct {
	live   *term.Live
	mirror *mirror.Mirror
	begun  time.Time
	// above is how many lines another view draws between the summary and the
	// tables.
	above int
	past  pastText
	// took is how long the first state took; 0 until it is complete.
	took time.Duration
}

// run draws until ctx ends.
func (v *mirrorView) run(ctx context.Context) {
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			_ = v.live.Draw(v.lines(now))
		case <-ctx.Done():
			return // with the last state on the screen
		}
	}
}

func (v *mirrorView) lines(now time.Time) []term.Line {
	width, height := v.live.Size()
	if small, ok := tooSmallNow(width, height); ok {
		return small
	}
	p := progressOf(v.mirror, now.Sub(v.begun))
	if v.took == 0 && p.done() {
		v.took = now.Sub(v.begun)
	}
	return append([]term.Line{v.heading(now, p, width)}, v.tables(now, height-3-v.above)...)
}

func (v *mirrorView) heading(now time.Time, p progress, width int) term.Line {
	if v.took == 0 {
		bar := min(30, width/3)
		return term.Line{{Text: term.Bar(bar, p.part()), Style: term.Green}, {Text: " " + p.String(), Style: term.Bold}}
	}
	text := fmt.Sprintf("%s of %s, synced in %s", plural(p.received, "object"), plural(p.tables, "resource"), seconds(v.took))
	if past := v.past.of(v.mirror, now); past != "" {
		text += "; " + past
	}
	return term.Line{{Text: text, Style: term.Bold}}
}

// tables draws the tables in columns. If they do not all fit, it shows the tables with
// problems and the busiest ones.
func (v *mirrorView) tables(now time.Time, room int) []term.Line {
	var all []tableLine
	problems := v.mirror.Problems()
	for _, t := range v.mirror.Tables() {
		all = append(all, newTableLine(t, problems, now))
	}
	last := advice(problems)
	room -= len(last)
	left := 0
	if len(all) > room {
		slices.SortStableFunc(all, func(a, b tableLine) int {
			return cmp.Or(cmp.Compare(b.trouble, a.trouble), cmp.Compare(b.perSecond, a.perSecond))
		})
		all, left = all[:max(room-1, 0)], len(all)-max(room-1, 0)
	}
	lines := align(all)
	if left > 0 {
		lines = append(lines, term.Line{{Text: fmt.Sprintf("… and %s", plural(left, "other")), Style: term.Dim}})
	}
	return append(lines, last...)
}

// tableLine is a table in the form of a few cells.
type tableLine struct {
	cells     []string
	trouble   int
	perSecond float64
	err       string
	errStyle  term.Style
}

var tableColumns = []string{"RESOURCE", "OBJECTS", "EVENTS/S", "AGE", "STATE", "LAST ERROR"}

func newTableLine(t *mirror.Table, problems []mirror.Problem, now time.Time) tableLine {
	status := t.Status()
	objects := thousands(status.Objects)
	if !status.Health.Synced {
		objects = thousands(status.Received)
		if status.Expected > 0 {
			objects += "/" + thousands(status.Expected)
		}
	}
	age := "-"
	if !status.Health.LastContact.IsZero() {
		age = seconds(status.Health.Age)
	}
	line := tableLine{
		cells:     []string{t.Resource().Name(), objects, figure(status.EventsPerSecond), age, stateOf(status.Health)},
		perSecond: status.EventsPerSecond,
	}
	i := slices.IndexFunc(problems, func(p mirror.Problem) bool { return p.Table == t.Resource().Name() })
	if i < 0 {
		return line
	}
	if p := problems[i]; p.Over() {
		line.err, line.errStyle = fmt.Sprintf("%s (over since %s)", p.What, seconds(now.Sub(p.Until))), term.Dim
	} else {
		line.trouble, line.err, line.errStyle = 1, p.What, term.Red
	}
	return line
}

// stateOf is the state of a table, and the source of its content if that is not the server.
func stateOf(h tarn.Health) string {
	if h.FromDisk {
		return fmt.Sprintf("%s, from disk, %s old", h.State, seconds(h.Age))
	}
	return h.State.String()
}

// advice says what to do about the newest current problem.
func advice(problems []mirror.Problem) []term.Line {
	for _, p := range problems {
		if !p.Over() {
			return []term.Line{{{Text: p.Table + ": " + p.Advice, Style: term.Yellow}}}
		}
	}
	return nil
}

// align puts the lines below their columns' names, with numbers aligned to the right.
func align(all []tableLine) []term.Line {
	widths := make([]int, len(tableColumns)-1)
	for i := range widths {
		widths[i] = term.Width(tableColumns[i])
		for _, l := range all {
			widths[i] = max(widths[i], term.Width(l.cells[i]))
		}
	}
	row := func(cells []string, style term.Style) term.Line {
		var line term.Line
		for i, cell := range cells {
			gap := strings.Repeat(" ", widths[i]-term.Width(cell))
			if i >= 1 && i <= 3 {
				cell = gap + cell
			} else {
				cell += gap
			}
			line = append(line, term.Span{Text: cell + "   ", Style: style})
		}
		return line
	}
	last := len(tableColumns) - 1
	lines := []term.Line{append(row(tableColumns[:last], term.Bold), term.Span{Text: tableColumns[last], Style: term.Bold})}
	for _, l := range all {
		lines = append(lines, append(row(l.cells, term.Plain), term.Span{Text: l.err, Style: l.errStyle}))
	}
	return lines
}
