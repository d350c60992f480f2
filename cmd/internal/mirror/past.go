package mirror

import (
	"context"
	"errors"
	"time"

	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/sqlite"
)

// Past describes the history that a mirror keeps.
type Past struct {
	// Since is the earliest time for which all of these tables have a history.
	Since  time.Time
	Tables int
	States int64
	// Note says why less is kept than was configured; empty if nothing is missing.
	Note string
}

// Past reads the extent of the mirror's history from disk. It is the zero value if the mirror
// keeps no history, or does not have a first state on disk yet.
func (m *Mirror) Past(ctx context.Context) (p Past, err error) {
	if m.disk == nil || m.disk.DB.History() == (sqlite.History{}) {
		return p, nil
	}
	for _, t := range m.tables {
		bounds, err := m.disk.DB.Log(SQLName(t.resource)).Bounds(ctx)
		switch {
		case errors.Is(err, changelog.ErrNoLog), errors.Is(err, sqlite.ErrNoCollection):
			continue
		case err != nil:
			return p, err
		case bounds.Since.IsZero():
			continue
		}
		p.Tables++
		p.States += bounds.States
		if bounds.Since.After(p.Since) {
			p.Since = bounds.Since
		}
		if d := t.replica.Health().Disk; d != nil && d.Note != "" {
			p.Note = d.Note
		}
	}
	return p, nil
}
