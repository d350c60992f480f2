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

// Pruning removes what is older than the horizon, with each commit of some lives, in turn.
// So no commit takes long, and each life is visited about twenty times while a state ages:
// what is removed from it lies side by side.
//
// The horizon moves with time. At the bound of bytes, which is that of the file, the
// horizons of all logs move to one time, past as many commits as would bring it down to
// relaxedPercent, once all lives were visited for the horizons before. So the oldest states of
// the directory go first, also those of a collection that is not written any more: the
// commit of another one prunes it.
const (
	// visits is how often a life is visited within the age of a state.
	visits = 20
	// mostVisited bounds the work of one commit, unless that writes so much that the file
	// would pass its bound before all lives are visited.
	mostVisited = 2000
	// tightPercent of the bound of bytes is where pruning begins, and relaxedPercent where it
	// is to lead. The file keeps pages that are free, so it is as large as the most that was
	// ever in use: what is written while all lives are visited comes on top.
	tightPercent, relaxedPercent = 94, 88
)

// prune moves the horizon and visits some lives.
func (w *logWrite) prune(contact time.Time) error {
	now := contact.UnixMilli()
	tight, err := w.moveHorizon(now)
	if err != nil {
		return err
	}
	thin := int64(0)
	if w.Thin.After > 0 {
		t := now - w.Thin.After.Milliseconds()
		if thin, err = w.moments().placeOfTime(t, w.next.shown); err != nil {
			return err
		}
	}
	if err := w.pruneOthers(); err != nil {
		return err
	}
	n := w.due(now, tight)
	if n == 0 {
		return nil
	}
	w.next.visitedMS = now
	if err := w.visit(n, thin); err != nil {
		return err
	}
	if thin > w.next.thinned && thin > w.next.horizon {
		w.next.thinned = thin
		gap := changelog.Gap{Gap: tarn.Gap{Cause: changelog.GapThinned}, Since: time.UnixMilli(w.next.horizonMS), Until: time.UnixMilli(now - w.Thin.After.Milliseconds())}
		return run(w.stmts.gap, noRow, gapValues(w.c.db.keys, w.c.id, w.c.Name, gap)...)
	}
	return nil
}

// due is how many lives are visited now.
func (w *logWrite) due(now int64, tight bool) int64 {
	if tight {
		return w.dueAtBound(mostVisited)
	}
	period := int64(0)
	for _, d := range []time.Duration{w.Age, w.Thin.After} {
		if ms := d.Milliseconds() / visits; ms > 0 && (period == 0 || ms < period) {
			period = ms
		}
	}
	if period == 0 || now <= w.next.visitedMS {
		if now < w.next.visitedMS { // the clock went back
			w.next.visitedMS = now
		}
		return 0
	}
	return min(w.next.lives*(now-w.next.visitedMS)/period, mostVisited)
}

// dueAtBound is how many lives are visited at the bound of bytes: some, and as many as are
// needed to visit all before the file has grown by a fiftieth of the bound.
func (w *logWrite) dueAtBound(most int64) int64 {
	return max(min(w.next.lives/4+100, most), min(w.next.lives*w.bytes/(w.Bytes/50), w.next.lives)+1)
}

// moveHorizon moves the horizon by age and by bytes. It reports whether there is more to
// remove than usual.
func (w *logWrite) moveHorizon(now int64) (tight bool, err error) {
	if w.Age > 0 {
		t := now - w.Age.Milliseconds()
		if t-w.next.horizonMS > w.Age.Milliseconds()/(2*visits) {
			place, err := w.moments().placeOfTime(t, w.next.shown)
			if err != nil {
				return false, err
			}
			if err := w.setHorizon(place, t); err != nil {
				return false, err
			}
		}
	}
	if w.Bytes <= 0 {
		return false, nil
	}
	used, err := usedBytes(w.conn)
	if err != nil {
		return false, err
	}
	soon := used + w.bytes // after another commit as this one
	if soon < w.Bytes/100*tightPercent {
		w.tooSmall(false, used)
		return false, nil
	}
	if w.next.horizon == 0 {
		return true, nil
	}
	all := w.boundLogs()
	for _, l := range all {
		if l.behind() {
			return true, nil
		}
	}
	moved, err := moveAll(all, (soon-w.Bytes/100*relaxedPercent)*3/2)
	if err != nil {
		return false, err
	}
	w.tooSmall(!moved, used)
	return moved, nil
}

// behind reports whether there are lives that were not visited since the horizon moved.
func (w *logWrite) behind() bool { return w.next.round < w.next.horizon }

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
		if t <= l.next.horizonMS {
			continue
		}
		place, err := l.moments().placeOfTime(t, l.next.shown)
		if err != nil {
			return false, err
		}
		further := place > l.next.horizon
		if err := l.setHorizon(place, t); err != nil {
			return false, err
		}
		if further { // the round before has ended, and one that begins now visits all
			moved, l.next.cursor, l.roundStart = true, 0, l.next.horizon
		}
	}
	return moved, nil
}

// pruneOthers visits lives of other logs whose horizon has moved.
func (w *logWrite) pruneOthers() error {
	left := int64(mostVisited)
	for _, l := range w.others {
		if l.behind() && left > 0 {
			n := min(l.next.lives/4+100, left)
			left -= n
			if err := l.visit(n, 0); err != nil {
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
// since their horizons.
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
		if bytes -= m.bytes; bytes <= 0 {
			return errEnough
		}
		return nil
	}, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return t, err
}

// setHorizon forgets how to find places before it.
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

// visit prunes the next lives.
func (w *logWrite) visit(n, thin int64) error {
	type visited struct{ id, last int64 }
	var lives []visited
	err := query(w.conn, "SELECT id, last FROM "+livesTable(w.c.id)+" WHERE id>? ORDER BY id LIMIT ?", func(row *sqlite3.Stmt) error {
		lives = append(lives, visited{row.ColumnInt64(0), row.ColumnInt64(1)})
		return nil
	}, w.next.cursor, n)
	if err != nil {
		return err
	}
	p := &pruning{logWrite: w, reader: reader{conn: w.conn, stmts: map[string]*sqlite3.Stmt{}}}
	defer p.done()
	for _, life := range lives {
		w.next.cursor = life.id
		if life.last <= w.next.horizon {
			w.life = life.id
			if err := w.forget(); err != nil {
				return err
			}
		} else if err := p.life(life.id, thin); err != nil {
			return err
		}
	}
	if int64(len(lives)) < n { // the last life: the next round begins
		w.next.cursor = 0
		w.next.round, w.roundStart = w.roundStart, w.next.horizon
	}
	return nil
}

// pruning removes states of a life.
type pruning struct {
	*logWrite
	reader
}

func (p *pruning) done() {
	for _, stmt := range p.reader.stmts {
		_ = stmt.Close() // it repeats the last error
	}
}

// prunedState is a state as far as pruning needs it.
type prunedState struct{ seq, heard int64 }

// life removes the states before the horizon, and thins out those before a place.
func (p *pruning) life(id, thin int64) error {
	states := statesTable(p.c.id)
	var all []prunedState
	upTo := max(p.next.horizon, thin)
	err := p.reader.query("SELECT seq, heard_ms FROM "+states+" WHERE life=? AND seq<=? ORDER BY seq", func(row *sqlite3.Stmt) error {
		all = append(all, prunedState{row.ColumnInt64(0), row.ColumnInt64(1)})
		return nil
	}, id, upTo)
	if err != nil || len(all) < 2 {
		return err
	}
	before, removed := int64(0), 0
	for from := 0; from < len(all); {
		to := from
		for to+1 < len(all) && p.together(all[to], all[to+1], thin) {
			to++
		}
		if to > from {
			removed += to - from
			if err := p.fold(id, before, all[from], all[to].seq); err != nil {
				return err
			}
		}
		before, from = all[to].seq, to+1
	}
	if removed == 0 {
		return nil
	}
	return p.reader.query("DELETE FROM "+basesTable(p.c.id)+" WHERE life=?1 AND id NOT IN (SELECT base FROM "+states+" WHERE life=?1)", noRow, id)
}

// together reports whether only the second of two states is kept.
func (p *pruning) together(a, b prunedState, thin int64) bool {
	if b.seq <= p.next.horizon {
		return true
	}
	every := p.Thin.Every.Milliseconds()
	return every > 0 && b.seq <= thin && a.heard/every == b.heard/every && a.seq > p.next.horizon
}

// fold removes the states of a life after one place, from removed on, and before kept.
func (p *pruning) fold(life, after int64, removed prunedState, kept int64) error {
	states := statesTable(p.c.id)
	if err := p.uncount("life=? AND seq>? AND seq<?", life, after, kept); err != nil {
		return err
	}
	err := p.reader.query("UPDATE "+states+" SET until_ms=coalesce(until_ms, ?3) WHERE life=?1 AND seq=?2", noRow, life, after, removed.heard)
	if err != nil {
		return err
	}
	return p.reader.query("DELETE FROM "+states+" WHERE life=?1 AND seq>?2 AND seq<?3", noRow, life, after, kept)
}
