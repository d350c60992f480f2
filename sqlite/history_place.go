package sqlite

import (
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// findTime is the place of a time.
func (s *logSession) findTime(t time.Time) (changelog.Place, error) {
	ms := t.UnixMilli()
	if err := s.begun(); err != nil {
		return changelog.Place{}, err
	}
	if ms < s.state.horizonMS {
		return changelog.Place{}, s.expired("its history begins at "+timeOf(s.state.horizonMS).Format(time.RFC3339Nano), t.Format(time.RFC3339Nano))
	}
	seq, err := s.momentTable().placeOfTime(ms, s.state.shown)
	if err != nil {
		return changelog.Place{}, err
	}
	place := changelog.Place{Seq: changelog.Seq(max(seq, s.state.horizon))}
	err = s.gaps("from_ms<? AND to_ms>?", func(g changelog.Gap) error {
		place.Gaps = append(place.Gaps, g)
		return nil
	}, ms, ms)
	return place, err
}

// findVersion is the place of a version.
func (s *logSession) findVersion(v tarn.Version) (changelog.Place, error) {
	if err := s.begun(); err != nil {
		return changelog.Place{}, err
	}
	wanted, decimal := storedVersion(string(v)).(int64)
	current, known := storedVersion(string(s.row.state.version)).(int64)
	switch {
	case !decimal || !known:
		return changelog.Place{}, fmt.Errorf("%s: versions have an order only where they are numbers, and %q and %q are not both: ask for a time", s.row.name, v, s.row.state.version)
	case wanted > current:
		return changelog.Place{}, fmt.Errorf("%s: %w: it is at version %d, and %d was asked for", s.row.name, changelog.ErrAhead, current, wanted)
	}
	m, ok, err := s.momentTable().one("epoch=? AND number<=? ORDER BY number DESC, seq DESC", s.state.epochs, wanted)
	if err == nil {
		err = s.momentTable().follows(m, s.state.shown)
	}
	if err != nil {
		return changelog.Place{}, err
	}
	if !ok || m.seq < s.state.horizon {
		why := "its history begins at a later version"
		if s.state.epochs > 0 {
			why += ", or the server has gone back since, so that the version has two meanings"
		}
		return changelog.Place{}, s.expired(why, "version "+string(v))
	}
	found := changelog.Place{Seq: changelog.Seq(min(m.seq, s.state.shown))}
	if m.number != wanted {
		if found, err = s.within(m.seq, wanted, v); err != nil || len(found.Gaps) > 0 {
			return found, err
		}
	}
	found.Gaps, err = s.lostAt(found.Seq, v)
	return found, err
}

// lostAt returns the gaps around a version that span several commits: gaps of states that the
// log once had, and of bad objects.
func (s *logSession) lostAt(place changelog.Seq, v tarn.Version) (gaps []changelog.Gap, err error) {
	err = s.gaps("cause IN (?, ?, ?, ?)", func(g changelog.Gap) error {
		thinned := g.Cause == changelog.GapThinned && place < changelog.Seq(s.state.thinned)
		if thinned || g.From.OlderThan(v) && (g.To == "" || v.OlderThan(g.To)) {
			gaps = append(gaps, g)
		}
		return nil
	}, string(changelog.GapThinned), string(changelog.GapDropped), string(changelog.GapDamaged), string(tarn.GapBad))
	return gaps, err
}

// within finds a version after a place, up to the next one whose version is known.
func (s *logSession) within(place, wanted int64, v tarn.Version) (found changelog.Place, err error) {
	m, ok, err := s.momentTable().one("seq>? ORDER BY number IS NULL, seq", place)
	found.Seq = changelog.Seq(min(place, s.state.shown))
	if err != nil || !ok {
		return found, err
	}
	end := m.seq
	err = s.gaps("seq>? AND seq<=?", func(g changelog.Gap) error {
		if g.CoversVersion(v) {
			found.Gaps = append(found.Gaps, g)
		}
		return nil
	}, place, end)
	if err != nil || len(found.Gaps) > 0 {
		return found, err
	}
	seq, err := number(s.conn, fmt.Sprintf("SELECT coalesce(max(seq), 0) FROM %s WHERE seq>? AND seq<=? AND typeof(version)='integer' AND version<=?", statesTable(s.id)), place, end, wanted)
	found.Seq = changelog.Seq(min(max(place, seq), s.state.shown))
	return found, err
}

// begun fails before the first state of the log is complete.
func (s *logSession) begun() error {
	if s.state.horizonMS != 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: its first state is not all on disk yet", s.row.name, changelog.ErrAhead)
}

func (s *logSession) expired(why, wanted string) error {
	return fmt.Errorf("%s: %w: %s, and %s was asked for", s.row.name, changelog.ErrExpired, why, wanted)
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// gaps calls each for the gaps that fulfil a condition, in order.
func (s *logSession) gaps(where string, each func(changelog.Gap) error, args ...any) error {
	return s.query("SELECT "+gapColumns+" FROM tarn_log_gaps WHERE collection=? AND "+where+" ORDER BY seq", func(row *sqlite3.Stmt) error {
		g := changelog.Gap{
			Seq: changelog.Seq(row.ColumnInt64(0)), Since: time.UnixMilli(row.ColumnInt64(5)), Until: time.UnixMilli(row.ColumnInt64(6)),
			Gap: tarn.Gap{Section: row.ColumnText(1), From: tarn.Version(row.ColumnText(2)), To: tarn.Version(row.ColumnText(3)), Cause: tarn.GapCause(row.ColumnText(4))},
		}
		if s.keys != nil && gapValues(s.keys, s.id, s.row.name, g)[8] != sumOf(row.ColumnRawBlob(7)) {
			return fmt.Errorf("%w: a gap of the history of %s", errBadRow, s.row.name)
		}
		return each(g)
	}, append([]any{s.id}, args...)...)
}
