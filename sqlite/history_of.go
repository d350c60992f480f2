package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// These bound the states of a key that are read in one transaction, and are in memory at
// once, by number and by bytes. The bounds are larger than those of other walks (see chunk),
// because the history of a key is mostly read to its end.
const (
	mostOfKey      = 1024
	mostBytesOfKey = 8 << 20
)

// Of walks the history of a key.
func (l *logReader) Of(ctx context.Context, key tarn.Key) iter.Seq2[changelog.Entry, error] {
	return func(yield func(changelog.Entry, error) bool) {
		life, after, gaps := int64(0), int64(0), changelog.Seq(-1)
		l.walk(ctx, yield, func(s *logSession) (all []changelog.Entry, more bool, err error) {
			if gaps < 0 {
				if err := s.firstOf(key, &life, &gaps); err != nil || life == 0 {
					return nil, false, err
				}
				after = int64(gaps) - 1
			}
			all, more, err = s.someOf(life, after)
			if err != nil {
				return nil, false, err
			}
			to := changelog.Seq(s.state.shown)
			if more {
				to = all[len(all)-1].Seq
				after = int64(to)
			} else {
				next := int64(0)
				if err := s.nextLife(key, life, &next); err != nil {
					return nil, false, err
				}
				if life, after, more = next, 0, next != 0; more && len(all) > 0 {
					to = all[len(all)-1].Seq
				}
			}
			all, err = s.addGaps(all, gaps, to)
			gaps = max(gaps, to)
			return all, more, err
		})
	}
}

// firstOf finds the first life of a key after the horizon, and the place of its first state:
// the state that was valid at the horizon, or the first state of all. Earlier states may have
// been pruned in part.
func (s *logSession) firstOf(key tarn.Key, life *int64, place *changelog.Seq) error {
	err := s.query("SELECT id FROM "+livesTable(s.id)+" WHERE key=? AND first<=? AND last>? ORDER BY first LIMIT 1", func(row *sqlite3.Stmt) error {
		*life = row.ColumnInt64(0)
		return nil
	}, string(key), s.state.shown, s.state.horizon)
	if err != nil || *life == 0 {
		return err
	}
	states := statesTable(s.id)
	first, err := number(s.conn, "SELECT coalesce((SELECT max(seq) FROM "+states+" WHERE life=?1 AND seq<=?2), (SELECT min(seq) FROM "+states+" WHERE life=?1), 0)", *life, s.state.horizon)
	*place = changelog.Seq(first)
	return err
}

func (s *logSession) nextLife(key tarn.Key, life int64, next *int64) error {
	return s.query(fmt.Sprintf("SELECT id FROM %s WHERE key=?1 AND first<=?3 AND first>(SELECT first FROM %[1]s WHERE id=?2) ORDER BY first LIMIT 1", livesTable(s.id)), func(row *sqlite3.Stmt) error {
		*next = row.ColumnInt64(0)
		return nil
	}, string(key), life, s.state.shown)
}

// someOf reads the states of a life after a place, and reports whether there are more.
func (s *logSession) someOf(life, after int64) (all []changelog.Entry, more bool, err error) {
	bytes := 0
	err = s.query(s.statesInTurn("s.life=? AND s.seq>? AND s.seq<=? ORDER BY s.seq"), func(row *sqlite3.Stmt) error {
		if n := len(all); n > 0 && all[n-1].Until.IsZero() {
			all[n-1].Until = time.UnixMilli(row.ColumnInt64(3))
		}
		if more = len(all) >= mostOfKey || bytes >= mostBytesOfKey; more {
			return errEnough
		}
		e, err := s.entry(row)
		all, bytes = append(all, e), bytes+len(e.Object)
		return err
	}, life, after, s.state.shown)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, more, err
}
