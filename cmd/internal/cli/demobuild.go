package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/term"
)

// buildView shows the progress of building a large cluster: as a bar in a terminal, else as
// an occasional line. For a small cluster it shows nothing.
type buildView struct {
	live  *term.Live // nil for plain lines
	out   io.Writer
	pods  int
	begun time.Time

	lastPrinted time.Time
	drawn       bool
}

// step receives the number of pods.
func (v *buildView) step(pods int) {
	now := time.Now()
	every := 2 * time.Second
	if v.live != nil {
		every = redrawEvery
	}
	if v.lastPrinted.IsZero() {
		v.lastPrinted = v.begun
	}
	if now.Sub(v.lastPrinted) < every {
		return
	}
	v.lastPrinted = now
	p := progress{received: pods, expected: v.pods, known: true, elapsed: now.Sub(v.begun)}
	text := fmt.Sprintf("putting up a cluster: %s", p.of("pod"))
	if v.live == nil {
		fmt.Fprintf(v.out, "%s %s\n", stamp(now), text)
		return
	}
	width, _ := v.live.Size()
	v.drawn = true
	_ = v.live.Draw([]term.Line{{{Text: term.Bar(min(30, width/3), p.part()), Style: term.Green}, {Text: " " + text, Style: term.Bold}}})
}

// done removes the bar.
func (v *buildView) done() {
	if v.drawn {
		_ = v.live.Draw(nil)
	}
}
