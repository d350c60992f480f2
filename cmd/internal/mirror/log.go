package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/sqlite"
)

// TableLog is the history of a table: every state of its objects, as far as the disk keeps
// them. States are shown as they were written: without the fields that the mirror leaves out,
// and with the values of Secrets only if the disk has them.
type TableLog struct {
	changelog.Log
	table   *Table
	db      *sqlite.DB
	decoder *wire.Decoder
}

// KeepsHistory reports whether the mirror keeps past states of a table.
func (m *Mirror) KeepsHistory(t *Table) bool {
	return m.disk != nil && m.disk.DB.History() != (sqlite.History{}) && (!t.resource.Secret() || m.disk.Secrets)
}

// Log returns the history of a table. It fails with [changelog.ErrNoLog] if none is kept.
func (m *Mirror) Log(t *Table) (*TableLog, error) {
	name := t.resource.Name()
	switch {
	case m.KeepsHistory(t):
	case m.disk != nil && t.resource.Secret() && !m.disk.Secrets:
		return nil, fmt.Errorf("%s: %w: Secrets are not written to disk", name, changelog.ErrNoLog)
	default:
		return nil, fmt.Errorf("%s: %w: start the mirror with --to DIR and --history, as in --history 24h,20GB", name, changelog.ErrNoLog)
	}
	decoder, err := wire.NewDecoder(objectType, wire.Options{})
	if err != nil {
		return nil, err
	}
	return &TableLog{m.disk.DB.Log(SQLName(t.resource)), t, m.disk.DB, decoder}, nil
}

// Settle writes pending states to disk, so that the log has everything that the copy has.
// If it fails, the log still has all that was written before.
func (l *TableLog) Settle() error {
	if err := l.db.Flush(); err != nil && !errors.Is(err, tarn.ErrStopped) {
		return fmt.Errorf("the newest states are not on disk yet: %w", err)
	}
	return nil
}

// Decode returns the object of a state.
func (l *TableLog) Decode(s changelog.State) (Object, error) {
	decoded, err := l.decoder.JSON(s.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %s at version %s: %w", l.table.resource.Name(), s.Key, s.Version, err)
	}
	object, ok := decoded.(Object)
	if !ok {
		return nil, fmt.Errorf("%s: the decoder made a %T of %s", l.table.resource.Name(), decoded, s.Key)
	}
	return object, nil
}

const (
	// mostGaps bounds how many gaps of a table are returned, gapsTime the time it takes.
	mostGaps = 1000
	gapsTime = 5 * time.Second
)

// Gaps are the newest gaps in the history of the table, oldest first; at most a thousand.
func (l *TableLog) Gaps(ctx context.Context) ([]changelog.Gap, error) {
	found, err := l.db.Query(ctx, "SELECT section, from_version, to_version, cause, since, until FROM tarn_gaps WHERE collection = ? ORDER BY until DESC",
		sqlite.Limits{Rows: mostGaps, Time: gapsTime}, SQLName(l.table.resource))
	if err != nil {
		return nil, err
	}
	gaps := make([]changelog.Gap, len(found.Rows))
	for i, row := range found.Rows {
		gaps[len(gaps)-1-i] = changelog.Gap{
			Gap:   tarn.Gap{Section: fmt.Sprint(row[0]), From: versionOf(row[1]), To: versionOf(row[2]), Cause: tarn.GapCause(fmt.Sprint(row[3]))},
			Since: fromSeconds(row[4]), Until: fromSeconds(row[5]),
		}
	}
	return gaps, nil
}

// versionOf reads a version of SQL, which is NULL if it is not known.
func versionOf(value any) tarn.Version {
	text, _ := value.(string)
	return tarn.Version(text)
}

// fromSeconds reads a time of SQL: Unix seconds, with milliseconds as their fraction.
func fromSeconds(value any) time.Time {
	seconds, _ := value.(float64)
	return time.UnixMilli(int64(seconds*1000 + 0.5))
}
