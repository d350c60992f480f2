package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// Pruning removes what is older than the horizon. Each commit prunes the next states, in the
// order of the log. A state is removed when pruning reaches the state that superseded it. So
// pruning reads each state once, and the states that it removes together lie side by side.
// The states that are left before the horizon are those that were valid there.
//
// The horizon moves with time. At the bound of bytes, which is that of the file, the
// horizons of all logs move to one time, past as many commits as would bring it down to
// relaxedPercent, once pruning has reached the horizons before. So the oldest states of
// the directory go first, also those of a collection that is not written any more: the
// commit of another one prunes it.
const (
	// steps is the number of steps in which the horizon moves by the age of a history.
	// Thinning takes as many steps for the age after which states are thinned out.
	steps = 40
	// mostPruned is how many states a commit passes, unless it writes so much that the file
	// would pass its bound, or that states would accumulate. With fewer at a time, the same
	// pages are written more often.
	mostPruned = 5000
	// Pruning begins at tightPercent of the bound of bytes, and aims at relaxedPercent. The
	// file keeps its free pages, so its size is the most that was ever in use, and includes
	// what is written while states are removed.
	tightPercent, relaxedPercent = 94, 88
)

// prune moves the horizon, and passes the next states.
func (w *logWrite) prune(contact time.Time) error {
	now := contact.UnixMilli()
	if err := inTurn(w.moveHorizon(now), w.pruneOthers); err != nil {
		return err
	}
	p := &pruning{logWrite: w, reader: reader{conn: w.conn, stmts: map[string]*sqlite3.Stmt{}}}
	defer p.done()
	n := w.due(max(mostPruned, 2*int64(len(w.entries))), w.bytes)
	return inTurn(p.remove(n), func() error { return p.thin(contact, n) })
}

// due is how many states a commit of this many bytes passes: n, or as many as are needed to
// reach the horizon before the file has grown by a fiftieth of its bound.
func (w *logWrite) due(n, bytes int64) int64 {
	if w.Bytes > 0 {
		grown := min(float64(bytes)/float64(w.Bytes/50), 1)
		n = max(n, int64(grown*float64(w.next.horizon-w.next.pruned))+1)
	}
	return n
}

// moveHorizon moves the horizon by age and by bytes.
func (w *logWrite) moveHorizon(now int64) error {
	if w.Age > 0 {
		t := now - w.Age.Milliseconds()
		if t-w.next.horizonMS > w.Age.Milliseconds()/steps {
			place, err := w.moments().placeOfTime(t, w.next.shown)
			if err != nil {
				return err
			}
			if err := w.setHorizon(place, t); err != nil {
				return err
			}
		}
	}
	if w.Bytes <= 0 || w.next.horizon == 0 {
		return nil
	}
	used, err := usedBytes(w.conn)
	if err != nil {
		return err
	}
	soon := used + w.bytes // after another commit like this one
	if soon < w.Bytes/100*tightPercent {
		w.tooSmall(false, used)
		return nil
	}
	all := w.boundLogs()
	for _, l := range all {
		if l.behind() {
			return nil
		}
	}
	moved, err := moveAll(all, (soon-w.Bytes/100*relaxedPercent)*3/2)
	if err != nil {
		return err
	}
	w.tooSmall(!moved, used)
	return nil
}

// behind reports whether there are states to pass before the horizon.
func (w *logWrite) behind() bool { return w.next.pruned < w.next.horizon }

// boundLogs are the logs whose states count for the bound of bytes, this one first. Those
// of others are written with this one, in one transaction.
func (w *logWrite) boundLogs() []*logWrite {
	if w.others == nil && !w.alone {
		for _, c := range w.c.db.collections {
			if l := c.log; c != w.c && l != nil && l.Bytes > 0 && l.state.horizon > 0 && l.stmts.state != nil {
				w.others = append(w.others, l.begin(w.conn))
			}
		}
		slices.SortFunc(w.others, func(a, b *logWrite) int { return cmp.Compare(a.c.id, b.c.id) })
	}
	return append([]*logWrite{w}, w.others...)
}

// moveAll moves the horizons of logs to the time before which they have written this many
// bytes. It reports whether any has moved.
func moveAll(logs []*logWrite, bytes int64) (moved bool, err error) {
	t, err := timeOfBytes(logs, bytes)
	if err != nil {
		return false, err
	}
	for _, l := range logs {
		if t < l.next.horizonMS {
			continue
		}
		place, err := l.moments().placeOfTime(t, l.next.shown)
		if err != nil {
			return false, err
		}
		moved = moved || place > l.next.horizon
		if err := l.setHorizon(place, t); err != nil {
			return false, err
		}
	}
	return moved, nil
}

// pruneOthers passes states of other logs whose horizon has moved.
func (w *logWrite) pruneOthers() error {
	left := int64(mostPruned)
	for _, l := range w.others {
		if l.behind() {
			n := l.due(left, w.bytes)
			left = max(left-n, 0)
			p := &pruning{logWrite: l, reader: reader{conn: l.conn, stmts: map[string]*sqlite3.Stmt{}}}
			err := p.remove(n)
			p.done()
			if err != nil {
				return err
			}
		}
		if l.next != l.logbook.state {
			if err := l.writeState(l.conn, l.next); err != nil {
				return err
			}
		}
	}
	return nil
}

// committed keeps in memory what the transaction has written.
func (w *logWrite) committed() {
	for _, l := range append([]*logWrite{w}, w.others...) {
		l.logbook.state = l.next
	}
}

// ErrHistoryFull says that the bound of a history is too small for the present state.
var ErrHistoryFull = errors.New("the history has no room")

// tooSmall notes whether the bound leaves no room for any history.
func (w *logWrite) tooSmall(is bool, used int64) {
	l := w.logbook
	if (l.note != "") == is {
		return
	}
	if l.note = ""; is {
		l.note = fmt.Sprintf("%v: the file has %d MiB without any past state, and its bound is %d MiB: raise the bound, or keep fewer objects", ErrHistoryFull, used>>20, w.Bytes>>20)
		l.c.db.logEvent(slog.LevelWarn, l.note, "collection", l.c.Name)
	}
}

// usedBytes is the part of the file that is in use.
func usedBytes(conn *sqlite3.Conn) (int64, error) {
	pages, err1 := number(conn, "PRAGMA page_count")
	free, err2 := number(conn, "PRAGMA freelist_count")
	return (pages - free) * pageSize, first(err1, err2)
}

// timeOfBytes is the time before which the commits of logs have written this many bytes
// since their horizons. Commits without a time, because the clock was set back after them,
// count with the next that has one.
func timeOfBytes(logs []*logWrite, bytes int64) (t int64, err error) {
	var parts []string
	var args []any
	for i, l := range logs {
		parts = append(parts, fmt.Sprintf("SELECT %s, %d FROM %s WHERE seq>?", momentColumns, i, momentsTable(l.c.id)))
		args = append(args, l.next.horizon)
	}
	err = query(logs[0].conn, strings.Join(parts, " UNION ALL ")+" ORDER BY low_ms", func(row *sqlite3.Stmt) error {
		m, err := logs[row.ColumnInt64(7)].moments().scan(row)
		if err != nil {
			return err
		}
		low, _ := m.low.(int64)
		t = max(t, low) // NULL comes first
		if bytes -= m.bytes; bytes <= 0 && t > 0 {
			return errEnough
		}
		return nil
	}, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return t, err
}

// setHorizon moves the horizon, and removes the moments and gaps before it.
func (w *logWrite) setHorizon(place, t int64) error {
	w.next.horizonMS = t
	if place <= w.next.horizon {
		return nil
	}
	w.next.horizon = place
	moments := momentsTable(w.c.id)
	return first(
		execute(w.conn, "DELETE FROM "+moments+" WHERE seq < (SELECT min(seq) FROM "+moments+" WHERE seq>=?)", place),
		execute(w.conn, "DELETE FROM tarn_log_gaps WHERE collection=? AND seq>0 AND seq<=? AND to_ms<?", w.c.id, place, t),
	)
}

// pruning removes states of a log.
type pruning struct {
	*logWrite
	reader
}

func (p *pruning) done() {
	for _, stmt := range p.reader.stmts {
		_ = stmt.Close() // it repeats the last error
	}
}

// following is the place of the n-th state after a place, or the end if there are fewer.
func (p *pruning) following(after, to, n int64) (place int64, err error) {
	count := int64(0)
	err = p.reader.query("SELECT count(*), max(seq) FROM (SELECT seq FROM "+statesTable(p.c.id)+" WHERE seq>? AND seq<=? ORDER BY seq LIMIT ?)", func(row *sqlite3.Stmt) error {
		count, place = row.ColumnInt64(0), row.ColumnInt64(1)
		return nil
	}, after, to, n)
	if count < n {
		place = to
	}
	return place, err
}

// remove passes the next n states before the horizon. It removes what they superseded: the
// states before them, whole states that no state is stored against any more, and lives that
// have ended.
func (p *pruning) remove(n int64) error {
	if !p.behind() {
		return nil
	}
	from := p.next.pruned
	to, err := p.following(from, p.next.horizon, n)
	if err != nil {
		return err
	}
	id := p.c.id
	// The first state that is stored against a whole one has no difference: with it, the whole
	// states before are not needed. It may be superseded itself, and is gone then.
	bases := fmt.Sprintf("DELETE FROM %s WHERE id IN (SELECT b.id FROM %s s CROSS JOIN %[1]s b ON b.life=s.life AND b.id<s.base WHERE s.seq>? AND s.seq<=? AND s.body IS NULL)", basesTable(id), statesTable(id))
	if err := p.reader.query(bases, noRow, from, to); err != nil {
		return err
	}
	superseded := fmt.Sprintf("DELETE FROM %s WHERE seq IN (SELECT (SELECT max(b.seq) FROM %[1]s b WHERE b.life=s.life AND b.seq<s.seq) FROM %[1]s s WHERE s.seq>? AND s.seq<=?) RETURNING sum", statesTable(id))
	err = p.reader.query(superseded, func(row *sqlite3.Stmt) error {
		p.uncounted(row)
		return nil
	}, from, to)
	if err != nil {
		return err
	}
	var ended []int64
	err = p.reader.query("SELECT id FROM "+livesTable(id)+" WHERE last>? AND last<=?", func(row *sqlite3.Stmt) error {
		ended = append(ended, row.ColumnInt64(0))
		return nil
	}, from, to)
	for _, life := range ended {
		if err == nil {
			p.logWrite.life = life
			err = p.forget()
		}
	}
	p.next.pruned = to
	return err
}

// thin passes the next n states that are old enough to be thinned out, and removes those
// before them that are of the same interval.
func (p *pruning) thin(now time.Time, n int64) error {
	if since := now.Sub(p.lastThinned); p.Thin.After <= 0 || since >= 0 && since < p.Thin.After/steps {
		return nil
	}
	until := now.Add(-p.Thin.After)
	old, err := p.moments().placeOfTime(until.UnixMilli(), p.next.shown)
	every := p.Thin.Every.Milliseconds()
	if every != p.next.everyMS { // thinned out otherwise, or not at all
		p.next.everyMS, p.next.thinning = every, 0
	}
	from := max(p.next.thinning, p.next.horizon)
	if err != nil || old <= from {
		return err
	}
	place, err := p.following(from, old, n)
	if err != nil {
		return err
	}
	var all []agedState
	err = p.reader.query("SELECT seq, life, heard_ms FROM "+statesTable(p.c.id)+" WHERE seq>? AND seq<=? ORDER BY seq", func(row *sqlite3.Stmt) error {
		all = append(all, agedState{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2)})
		return nil
	}, from, place)
	for _, s := range all {
		if err == nil {
			err = p.thinBefore(s)
		}
	}
	if err != nil {
		return err
	}
	if p.next.thinning, p.next.thinned = place, max(p.next.thinned, place); place == old {
		p.lastThinned = now
	}
	gap := changelog.Gap{Gap: tarn.Gap{Cause: changelog.GapThinned}, Since: time.UnixMilli(p.next.horizonMS), Until: until}
	return run(p.logWrite.stmts.gap, noRow, gapValues(p.c.db.keys, p.c.id, p.c.Name, gap)...)
}

// agedState has what thinning needs of a state.
type agedState struct{ seq, life, heard int64 }

// thinBefore removes the state that s superseded, if both are in the same interval. The state
// before both keeps the time when it was superseded.
func (p *pruning) thinBefore(s agedState) error {
	before := agedState{life: s.life}
	find := "SELECT seq, heard_ms FROM " + statesTable(p.c.id) + " WHERE life=? AND seq<? ORDER BY seq DESC LIMIT 1"
	err := p.reader.query(find, func(row *sqlite3.Stmt) error {
		before.seq, before.heard = row.ColumnInt64(0), row.ColumnInt64(1)
		return nil
	}, s.life, s.seq)
	if every := p.next.everyMS; err != nil || before.seq <= p.next.horizon || before.heard/every != s.heard/every {
		return err
	}
	states := statesTable(p.c.id)
	err = p.reader.query(fmt.Sprintf("UPDATE %s SET until_ms=coalesce(until_ms, ?3) WHERE seq=(SELECT max(seq) FROM %[1]s WHERE life=?1 AND seq<?2)", states), noRow, s.life, before.seq, before.heard)
	if err != nil {
		return err
	}
	return p.reader.query("DELETE FROM "+states+" WHERE seq=? RETURNING sum", func(row *sqlite3.Stmt) error {
		p.uncounted(row)
		return nil
	}, before.seq)
}
