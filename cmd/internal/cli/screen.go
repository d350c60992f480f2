package cli

import (
	"time"

	"github.com/tarnproject/tarn/cmd/internal/term"
)

const (
	// redrawEvery is how often a live view is drawn at most: often enough to look
	// alive, and cheap over a slow line.
	redrawEvery = 250 * time.Millisecond
	// minWidth and minHeight are what a live view needs to say anything.
	minWidth, minHeight = 40, 5
)

// screen gives the block of the terminal in which a live view is drawn, nil if
// out is no terminal: then plain lines are wanted. Logs stand above it until
// leave is called.
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

// tooSmallNow is what a view shows when its window was made too small.
func tooSmallNow(width, height int) ([]term.Line, bool) {
	if width >= minWidth && height >= minHeight {
		return nil, false
	}
	return []term.Line{term.Text("the terminal is too small")}, true
}

// stamp is the time in front of plain lines.
func stamp(t time.Time) string { return t.Format(time.RFC3339) }
