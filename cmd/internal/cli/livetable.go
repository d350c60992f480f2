package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// highlightFor is how long a change is highlighted.
const highlightFor = 4 * time.Second

// liveTable is a watched resource in the form in which it is drawn.
type liveTable struct {
	*watched
	rows                map[tarn.Key]*liveRow
	wide, withNamespace bool
	events              meter
}

// liveRow is a row and its last change. A deleted row stays until the user had time to see
// that.
type liveRow struct {
	*row
	last tarn.ChangeType
	at   time.Time
	// changed marks the cells of the last change.
	changed []bool
}

func (r *liveRow) fresh(now time.Time) bool { return r.last != 0 && now.Sub(r.at) < highlightFor }

// gone reports whether nothing of the row needs to be shown any more.
func (r *liveRow) gone(now time.Time) bool { return r.last == tarn.Delete && !r.fresh(now) }

func (t *liveTable) apply(c tarn.Change[*row], now time.Time) {
	r := &liveRow{row: c.Object, last: c.Type, at: now}
	if c.Initial {
		r.last, r.at = 0, time.Time{}
	}
	if before, ok := t.rows[c.Key]; ok && c.Type == tarn.Update {
		r.changed = make([]bool, len(c.Object.cells))
		for i, cell := range c.Object.cells {
			r.changed[i] = i >= len(before.cells) || cell != before.cells[i]
		}
		for i, column := range t.source.Columns() {
			if column.Name == ageColumn && i < len(r.changed) {
				r.changed[i] = false // it changes with time
			}
		}
	}
	t.rows[c.Key] = r
}

func (t *liveTable) count() int {
	n := 0
	for _, r := range t.rows {
		if r.last != tarn.Delete {
			n++
		}
	}
	return n
}

// wants is the number of lines that would show everything.
func (t *liveTable) wants() int { return 3 + len(t.rows) }

// lines draws the table into at most that many lines: a heading, the columns, and rows. If
// not all rows fit, it shows the rows that changed last, newest first.
func (t *liveTable) lines(now time.Time, room int) []term.Line {
	lines := []term.Line{t.heading(now)}
	rows := t.current(now)
	space := room - 3 // heading, columns, the line below
	if len(rows) == 0 || space < 1 {
		return lines
	}
	left := 0
	if len(rows) > space {
		slices.SortFunc(rows, func(a, b *liveRow) int {
			return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.meta.Key, b.meta.Key))
		})
		left = len(rows) - space
		rows = rows[:space]
	} else {
		slices.SortFunc(rows, func(a, b *liveRow) int {
			return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
		})
	}
	lines = append(lines, t.draw(now, rows)...)
	if left > 0 {
		lines = append(lines, term.Line{{Text: fmt.Sprintf("  … and %s that changed longer ago; -l and --field-selector show fewer", plural(left, "other")), Style: term.Dim}})
	} else {
		lines = append(lines, term.Text(""))
	}
	return lines
}

// current drops the rows that are gone and returns the others.
func (t *liveTable) current(now time.Time) []*liveRow {
	rows := make([]*liveRow, 0, len(t.rows))
	for key, r := range t.rows {
		if r.gone(now) {
			delete(t.rows, key)
			continue
		}
		rows = append(rows, r)
	}
	return rows
}

// shown returns which of the server's columns are drawn.
func (t *liveTable) shown() (indexes []int, names []string) {
	for i, column := range t.source.Columns() {
		if column.Priority == 0 || t.wide {
			indexes, names = append(indexes, i), append(names, column.Name)
		}
	}
	return indexes, names
}

// draw arranges rows in columns, below the column names.
func (t *liveTable) draw(now time.Time, rows []*liveRow) []term.Line {
	indexes, names := t.shown()
	header := names
	if t.withNamespace {
		header = append([]string{"Namespace"}, names...)
	}
	grid := make([][]string, len(rows))
	widths := make([]int, len(header))
	for i, name := range header {
		widths[i] = term.Width(name)
	}
	for i, r := range rows {
		if t.withNamespace {
			grid[i] = append(grid[i], r.namespace)
		}
		for j, index := range indexes {
			grid[i] = append(grid[i], t.cell(r, index, names[j]))
		}
		for j, cell := range grid[i] {
			widths[j] = max(widths[j], term.Width(cell))
		}
	}
	top := term.Line{{Text: "  "}}
	for i, name := range header {
		top = append(top, term.Span{Text: term.Pad(strings.ToUpper(name), widths[i]+3), Style: term.Bold})
	}
	lines := []term.Line{top}
	for i, r := range rows {
		lines = append(lines, t.drawRow(now, r, grid[i], widths, indexes))
	}
	return lines
}

func (t *liveTable) cell(r *liveRow, index int, name string) string {
	if index >= len(r.cells) {
		return ""
	}
	if name == ageColumn && !r.created.IsZero() {
		return age(r.created)
	}
	return term.Clean(r.cells[index])
}

// drawRow marks a row's change by a sign as well as by colour, for users who do not see
// colours.
func (t *liveTable) drawRow(now time.Time, r *liveRow, cells []string, widths, indexes []int) term.Line {
	mark, style := "  ", term.Plain
	if r.fresh(now) {
		switch r.last {
		case tarn.Add:
			mark, style = "+ ", term.Green
		case tarn.Delete:
			mark, style = "- ", term.Red
		case tarn.Update:
			mark = "~ "
		}
	}
	line := term.Line{{Text: mark, Style: style}}
	extra := len(cells) - len(indexes)
	for i, cell := range cells {
		cellStyle := style
		if i >= extra && mark == "~ " && indexes[i-extra] < len(r.changed) && r.changed[indexes[i-extra]] {
			cellStyle = term.Reversed
		}
		line = append(line, term.Span{Text: cell, Style: cellStyle}, term.Span{Text: strings.Repeat(" ", widths[i]-term.Width(cell)+3)})
	}
	return line
}
