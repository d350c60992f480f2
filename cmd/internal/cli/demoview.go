package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/demo"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// compareEvery is how often the copy is compared with the server.
const compareEvery = 5 * time.Second

// demoView shows a demonstration: what "tarn mirror" shows for any cluster, and the faults
// that are injected.
type demoView struct {
	session  *demo.Session
	live     *term.Live // nil for plain lines
	out      io.Writer
	interval time.Duration

	found atomic.Pointer[compared]
}

// compared is a finding and its time.
type compared struct {
	at      time.Time
	finding demo.Finding
}

// compare updates the finding until ctx ends. Without faults there is nothing to prove before
// the end.
func (v *demoView) compare(ctx context.Context) {
	if v.session.FaultyConnection == nil {
		return
	}
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			finding := v.session.Comparison.Compare(ctx)
			if ctx.Err() == nil {
				v.found.Store(&compared{time.Now(), finding})
			}
		}
	}
}

// run shows it until ctx ends.
func (v *demoView) run(ctx context.Context) {
	show := v.lines()
	if v.live != nil {
		show = v.table()
	}
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			show(now)
		case <-ctx.Done():
			return
		}
	}
}

// table draws in a terminal.
func (v *demoView) table() func(now time.Time) {
	inner := &mirrorView{live: v.live, mirror: v.session.Mirror, begun: v.session.Began}
	var trouble string
	var counted time.Time
	return func(now time.Time) {
		var news []term.Line
		if v.session.FaultyConnection != nil {
			if now.Sub(counted) >= time.Second {
				trouble, counted = v.trouble(), now
			}
			news = append(news, term.Line{{Text: trouble, Style: term.Yellow}})
			if found := v.found.Load(); found != nil {
				style := term.Green
				if len(found.finding.Different) > 0 {
					style = term.Red
				}
				news = append(news, term.Line{{Text: fmt.Sprintf("%s ago: %s", seconds(now.Sub(found.at)), findingText(found.finding)), Style: style}})
			}
		}
		inner.above = len(news)
		lines := inner.lines(now)
		if len(lines) > 1 {
			lines = append(append(lines[:1:1], news...), lines[1:]...)
		}
		_ = v.live.Draw(lines)
	}
}

func (v *demoView) trouble() string {
	return fmt.Sprintf("%s: %s", plural(v.session.FaultyConnection.Faults(), "injected fault"), v.session.FaultyConnection)
}

// lines prints plain lines without a terminal.
func (v *demoView) lines() func(now time.Time) {
	begun := v.session.Began
	inner := &mirrorLines{
		out: v.out, mirror: v.session.Mirror, begun: begun, interval: v.interval, lastPrinted: begun,
	}
	lastPrinted := begun
	var last *compared
	return func(now time.Time) {
		inner.step(now)
		if v.session.FaultyConnection == nil || now.Sub(lastPrinted) < v.interval {
			return
		}
		lastPrinted = now
		inner.printLine(now, "%s", v.trouble())
		if found := v.found.Load(); found != last {
			last = found
			inner.printLine(now, "%s", findingText(found.finding))
		}
	}
}

// findingText is the result of a comparison, in one line.
func findingText(f demo.Finding) string {
	text := fmt.Sprintf("%d of %d copies equal the server, %s", f.Equal, f.Tables, plural(f.Objects, "object"))
	if f.Equal == f.Tables {
		text = fmt.Sprintf("all %d copies equal the server, %s", f.Tables, plural(f.Objects, "object"))
	}
	if len(f.Different) > 0 {
		text += "; DIFFERENT: " + strings.Join(f.Different, "; ")
	}
	if len(f.Undecided) > 0 {
		text += "; not compared: " + strings.Join(f.Undecided, "; ")
	}
	return text
}
