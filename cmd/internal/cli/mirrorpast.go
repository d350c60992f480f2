package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
)

// readPastEvery is how often a view reads the extent of the history from disk.
const readPastEvery = 5 * time.Second

// pastText says since when a mirror keeps its history. It caches the text for some seconds,
// because a view is drawn too often to read the disk each time.
type pastText struct {
	read time.Time
	text string
}

// of is the text, empty while there is no history.
func (p *pastText) of(m *mirror.Mirror, now time.Time) string {
	if now.Sub(p.read) < readPastEvery {
		return p.text
	}
	p.read, p.text = now, ""
	past, err := m.Past(context.Background()) // a few rows of a local file
	switch {
	case err != nil:
		p.text = "history: " + brief(err)
	case past.Tables > 0:
		p.text = historyText(past, now)
	}
	return p.text
}

func historyText(past mirror.Past, now time.Time) string {
	text := fmt.Sprintf("history since %s, %s", dayTime(past.Since, now), plural(int(past.States), "state"))
	if past.Note != "" {
		text += "; " + past.Note
	}
	return text
}

// dayTime formats a time in the local zone, with its day unless that is today.
func dayTime(t, now time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// printHistory says since when a history is kept, once its first state is on disk.
func (a *app) printHistory(ctx context.Context, m *mirror.Mirror) {
	if db := m.DB(); db == nil || db.History() == (sqlite.History{}) {
		return
	}
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		past, err := m.Past(ctx)
		if err == nil && past.Tables > 0 {
			fmt.Fprintf(a.out, "Keeping %s.\n", historyText(past, time.Now()))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
