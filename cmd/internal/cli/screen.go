package cli

import (
	"time"

	"github.com/tarnproject/tarn/cmd/internal/term"
)

const (
	// redrawEvery is the shortest interval between two drawings of a live view: often enough
	// to look alive, and cheap over a slow line.
	redrawEvery = 250 * time.Millisecond
	// minWidth and minHeight are the smallest size in which a live view is useful.
	minWidth, minHeight = 40, 5
)

// screen returns the block of the terminal in which a live view is drawn, nil if out is not a
// terminal: then the command prints plain lines. Logs appear above the block until leave is
// called.
func (a *app) screen() (live *term.Live, leave func(), err error) {
	terminal, ok := a.terminal()
	if !ok {
		return nil, func() {}, nil
	}
	if err := term.TooSmall(terminal, minWidth, minHeight); err != nil {
		return nil, nil, err
	}
	live = term.NewLive(terminal)
	before := a.logging.sink.redirect(live)
	return live, func() { a.logging.sink.redirect(before) }, nil
}

// tooSmallNow is what a view shows if its window was made too small.
func tooSmallNow(width, height int) ([]term.Line, bool) {
	if width >= minWidth && height >= minHeight {
		return nil, false
	}
	return []term.Line{term.Text("the terminal is too small")}, true
}

// stamp formats the time at the start of plain lines.
func stamp(t time.Time) string { return t.Format(time.RFC3339) }
