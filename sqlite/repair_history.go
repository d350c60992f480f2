package sqlite

import (
	"fmt"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// logRepair copies the readable states of a log to a new file. What it cannot copy is a
// gap, and at its end the log agrees with the content that was saved.
//
// A log whose own row is damaged is not copied, because the meaning of its columns and places
// is unknown. A log whose conversion to the present format was interrupted is not copied
// either. The next start then begins a new one.
type logRepair struct {
	from *logSession
	to   *unitWriter
	next logState
	// columns are those of the log.
	columns []logColumn
	// living are the lives that have not ended, by key.
	living map[tarn.Key]savedLife
	// gaps has the places of gaps that were written.
	gaps map[changelog.Seq]bool
	// seen counts the states that were there, damaged or not.
	seen int64
	// before is the log before the repair, contact the last contact with the source.
	before  logState
	contact time.Time
}

// savedLife is the end of a life that was copied.
type savedLife struct {
	id, first int64
	uid       string
	// last is a checksum of its last state; cut says that states after it were lost.
	last Sum
	cut  bool
}

// history saves the log of a collection, whose content was written before. It returns how
// many states it saved.
func (w *unitWriter) history(row collectionRow, keys *fileKeys) (int64, error) {
	old := &logSession{reader: &w.from.reader, id: row.id, row: row, keys: keys, packer: w.from.packer}
	state, found, err := readLog(old.conn, keys, row.id, row.name)
	old.state = state
	pending, err2 := converting(old.conn, row.id)
	err, found = first(err, err2), found && !pending
	var columns []logColumn
	if err == nil && found {
		columns, err = decodeColumns(state.columns)
	}
	if err != nil || !found {
		if unreadable(err) {
			err = nil
		}
		return 0, err
	}
	h := &logRepair{from: old, to: w, next: state, before: state, columns: columns, living: map[tarn.Key]savedLife{}, gaps: map[changelog.Seq]bool{}, contact: row.state.lastContact}
	h.next.states, h.next.sum, h.next.lives = 0, 0, 0
	for _, sql := range historyDDL(row.id) {
		if err := w.conn.Exec(sql); err != nil {
			return 0, err
		}
	}
	err = inTurn(h.copyGaps(), h.copyLives, h.copyMoments, h.copyRewriting, h.agree)
	if err != nil {
		return 0, err
	}
	c := &collection{Collection: Collection{Name: row.name}, db: &DB{keys: keys}, id: row.id}
	return h.next.states, (&logbook{c: c}).writeState(w.conn, h.next)
}

// copyGaps copies the gaps. If one is damaged, the whole log is a gap.
func (h *logRepair) copyGaps() error {
	err := h.from.gaps("seq>=0", h.gap)
	if !unreadable(err) {
		return err
	}
	return h.loseAll()
}

func (h *logRepair) gap(g changelog.Gap) error {
	for h.gaps[g.Seq] {
		g.Seq++
	}
	h.gaps[g.Seq] = true
	h.next.seq = max(h.next.seq, int64(g.Seq))
	return h.to.query(writeGap, noRow, gapValues(h.from.keys, h.from.id, h.from.row.name, g)...)
}

// loseAll writes a gap over the whole log: it is not known where states are missing.
func (h *logRepair) loseAll() error {
	return h.gap(changelog.Gap{Seq: changelog.Seq(h.next.horizon) + 1, Gap: tarn.Gap{To: h.from.row.state.version, Cause: changelog.GapDamaged}, Since: time.UnixMilli(h.next.horizonMS), Until: h.contact})
}

// copyLives copies all lives that can be read. As with objects, it skips ids in growing
// steps where rows cannot be read.
func (h *logRepair) copyLives() error {
	const furthest = 1 << 50
	id, step, lost := int64(0), int64(1), int64(0)
	for id < furthest {
		var key, uid string
		var begin, end, found int64
		var sum Sum
		err := h.from.query("SELECT id, key, uid, first, last, sum FROM "+livesTable(h.from.id)+" WHERE id>? ORDER BY id LIMIT 1", func(row *sqlite3.Stmt) error {
			found, key, uid, begin, end, sum = row.ColumnInt64(0), row.ColumnText(1), row.ColumnText(2), row.ColumnInt64(3), row.ColumnInt64(4), sumOf(row.ColumnRawBlob(5))
			return nil
		}, id)
		switch {
		case unreadable(err):
			lost++
			id, step = id+step, 2*step
			continue
		case err != nil:
			return err
		case found == 0:
			id = furthest
			continue
		}
		id, step = found, 1
		if lifeSum(h.from.keys.sums, h.from.row.name, tarn.Key(key), uid, begin, end) != sum {
			lost++
			continue
		}
		if err := h.life(id, tarn.Key(key), savedLife{id: id, uid: uid, first: begin}, end); err != nil {
			return err
		}
	}
	if lost > 0 || h.seen != h.before.states {
		return h.loseAll()
	}
	return nil
}

// life copies the states of a life.
func (h *logRepair) life(id int64, key tarn.Key, l savedLife, end int64) error {
	c := &lifeCopy{logRepair: h, id: id, key: key, savedLife: l, end: end, bases: map[int64]bool{}}
	err := h.from.query(h.from.statesEvenDamaged("s.life=? ORDER BY s.seq"), func(row *sqlite3.Stmt) error {
		h.seen++
		return c.state(row)
	}, id)
	if unreadable(err) {
		c.cut, err = true, nil
		c.lose(c.before.Seq+1, changelog.State{Heard: c.before.Until})
	}
	if err != nil {
		return err
	}
	if err := c.endLost("", h.contact); err != nil {
		return err
	}
	if c.states > 0 && end == alive {
		h.living[key] = c.savedLife
	}
	return nil
}

// lifeCopy copies one life.
type lifeCopy struct {
	*logRepair
	savedLife
	id     int64
	key    tarn.Key
	end    int64
	states int64
	bases  map[int64]bool
	// headless says that its first states were lost.
	headless bool
	// before is the last state that was copied, lost the gap after it.
	before changelog.State
	lost   *changelog.Gap
}

// state copies a state, or notes that it is lost.
func (c *lifeCopy) state(row *sqlite3.Stmt) error {
	seq := row.ColumnInt64(1)
	e, err := c.from.entry(row)
	if err != nil && !damaged(err) {
		return err
	}
	if err != nil || c.states > 0 && e.Seq <= c.before.Seq { // a damaged index leads to a row twice
		c.lose(changelog.Seq(seq), e.State)
		return nil
	}
	if err := c.endLost(e.Version, e.Heard); err != nil {
		return err
	}
	sum, baseID := sumOf(row.ColumnRawBlob(8)), row.ColumnInt64(6)
	if c.states == 0 {
		if err := c.begin(seq); err != nil {
			return err
		}
	}
	if !c.bases[baseID] {
		c.bases[baseID] = true
		if err := c.to.insert(basesTable(c.from.id), baseID, c.id, sumOf(row.ColumnRawBlob(12)), row.ColumnBlob(13, nil), row.ColumnBlob(14, nil)); err != nil {
			return err
		}
	}
	c.before, c.last = e.State, c.from.packer.sum(c.key, e.Object)
	c.states++
	return c.addState(sum, seq, c.id, stored(row, 2), row.ColumnInt64(3), stored(row, 4), row.ColumnInt64(5), baseID, row.ColumnBlob(7, nil), sum, row.ColumnBlob(9, nil))
}

// begin writes the row of the life. It begins later if its first states are lost.
func (c *lifeCopy) begin(seq int64) error {
	if c.headless {
		c.first = seq
	}
	c.next.lives++
	return c.to.insert(livesTable(c.from.id), c.id, string(c.key), c.uid, c.first, c.end, lifeSum(c.from.keys.sums, c.from.row.name, c.key, c.uid, c.first, c.end))
}

// addState writes the row of a state.
func (h *logRepair) addState(sum Sum, row ...any) error {
	if err := h.to.insert(statesTable(h.from.id), row...); err != nil {
		return err
	}
	h.next.states++
	h.next.sum += sum.number()
	return nil
}

// lose begins a gap.
func (c *lifeCopy) lose(at changelog.Seq, s changelog.State) {
	if c.lost != nil {
		return
	}
	c.lost = &changelog.Gap{Seq: max(at, 1), Gap: tarn.Gap{From: c.before.Version, Cause: changelog.GapDamaged}, Since: s.Heard.Add(-time.Millisecond)}
	if c.states == 0 {
		c.headless, c.lost.Since = true, time.UnixMilli(c.next.horizonMS)
	} else if c.lost.Since.Before(c.before.Heard) {
		c.lost.Since = c.before.Heard
	}
}

func (c *lifeCopy) endLost(to tarn.Version, until time.Time) error {
	if c.lost == nil {
		return nil
	}
	g := *c.lost
	if g.To, g.Until, c.lost = to, until, nil; g.Since.After(until) {
		g.Since = until
	}
	return c.gap(g)
}

// copyMoments copies the moments, by which places are found by time and version. If they are
// damaged, it makes them again from the states.
func (h *logRepair) copyMoments() error {
	table, last := h.moments(), int64(0)
	err := h.from.moments(func(m moment) error {
		last = m.seq
		return h.addMoment(m)
	})
	if err == nil && last == h.next.seq {
		return nil
	}
	if err != nil && !unreadable(err) {
		return err
	}
	if err := h.to.conn.Exec("DELETE FROM " + momentsTable(table.id)); err != nil {
		return err
	}
	before, latest := int64(0), int64(math.MinInt64)
	err = query(h.to.conn, "SELECT seq, heard_ms, version FROM "+statesTable(h.from.id)+" ORDER BY seq", func(row *sqlite3.Stmt) error {
		seq, heard, version := row.ColumnInt64(0), row.ColumnInt64(1), versionNumber(row.ColumnText(2))
		if h.next.epochs > 0 {
			version = nil // it may be of another epoch
		}
		if heard <= latest {
			if err := table.supersede(heard); err != nil {
				return err
			}
		}
		m := moment{seq, before + 1, heard, version, h.next.epochs, 100}
		before, latest = seq, max(latest, heard)
		return h.addMoment(m)
	})
	if err != nil || before == h.next.seq {
		return err
	}
	return h.moment(before)
}

// moment adds the last moment, for what was written after a place.
func (h *logRepair) moment(after int64) error {
	at := h.contact.UnixMilli()
	if err := h.moments().supersede(at); err != nil {
		return err
	}
	return h.addMoment(moment{h.next.seq, after + 1, at, versionNumber(string(h.from.row.state.version)), h.next.epochs, 0})
}

// moments returns the moments of the new file.
func (h *logRepair) moments() momentTable {
	return momentTable{h.to.conn, h.from.keys, h.from.id, h.from.row.name}
}

func (h *logRepair) addMoment(m moment) error {
	return h.to.insert(momentsTable(h.from.id), h.moments().values(m)...)
}

// copyRewriting copies the record of how far the log was rewritten.
func (h *logRepair) copyRewriting() error {
	c := &collection{Collection: Collection{Name: h.from.row.name}, db: &DB{keys: h.from.keys}, id: h.from.id}
	r, err := c.readRewriting(h.from.conn)
	if err != nil || r == nil {
		return err
	}
	return first(h.to.conn.Exec(rewriteDDL(c.id)), c.writeRewriting(h.to.conn, *r))
}

// agree makes the log agree with the content: objects whose last state was lost get one,
// and lives of objects that were lost end.
func (h *logRepair) agree() error {
	id, before := h.from.id, h.next.seq
	version := "NULL"
	for _, c := range h.columns {
		if c.Kind == versionKind && !c.Gone {
			version = "r." + quote(c.Name)
		}
	}
	sql := fmt.Sprintf("SELECT key, sum, body, NULL FROM %s o ORDER BY key", objectsTable(id))
	if h.to.from.layout.shown {
		sql = fmt.Sprintf("SELECT o.key, o.sum, o.body, %s, r.* FROM %s o JOIN %s r ON r.id=o.id ORDER BY o.key", version, objectsTable(id), quote(rowsTable(id)))
	}
	err := query(h.to.conn, sql, func(row *sqlite3.Stmt) error {
		key, sum, body := tarn.Key(row.ColumnText(0)), sumOf(row.ColumnRawBlob(1)), row.ColumnBlob(2, nil)
		raw, err := h.from.packer.unpackBase(key, sum, nil, body, nil)
		if err != nil {
			return err
		}
		l, found := h.living[key]
		delete(h.living, key)
		if found && !l.cut && l.last == h.from.packer.sum(key, raw) {
			return nil
		}
		return h.present(key, l, sum, body, storedVersion(row.ColumnText(3)), h.presentValues(row))
	})
	for key, l := range h.living {
		if err == nil {
			h.next.seq++
			err = h.to.query("UPDATE "+livesTable(id)+" SET last=?2, sum=?3 WHERE id=?1", noRow, l.id, h.next.seq, lifeSum(h.from.keys.sums, h.from.row.name, key, l.uid, l.first, h.next.seq))
		}
	}
	if err != nil || h.next.seq == before {
		return err
	}
	h.next.shown = max(h.next.shown, h.next.seq)
	return h.moment(before)
}

// presentValues are the values of the columns of a row for SQL.
func (h *logRepair) presentValues(row *sqlite3.Stmt) (values []byte) {
	for number, c := range h.columns {
		for i := 4; i < row.ColumnCount(); i++ {
			if c.Kind == "" && !c.Gone && c.Name == row.ColumnName(i) {
				values = appendValue(values, number, stored(row, i))
			}
		}
	}
	return values
}

// present writes the state that the content has.
func (h *logRepair) present(key tarn.Key, l savedLife, sum Sum, body []byte, version any, values []byte) error {
	id, op := h.from.id, changelog.Modified
	h.next.seq += 2
	if l.id == 0 {
		op, l.first = changelog.Added, h.next.seq
		h.next.lives++
		if err := h.to.insert(livesTable(id), nil, string(key), "", l.first, int64(alive), lifeSum(h.from.keys.sums, h.from.row.name, key, "", l.first, alive)); err != nil {
			return err
		}
		l.id = h.to.conn.LastInsertRowID()
	}
	sum = baseSum(h.from.keys.sums, sum, values)
	if err := h.to.insert(basesTable(id), nil, l.id, sum, body, values); err != nil {
		return err
	}
	base, heard := h.to.conn.LastInsertRowID(), h.contact.UnixMilli()
	own := stateSum(h.from.keys.sums, h.from.row.name, key, l.uid, l.id, h.next.seq, version, heard, op, base, sum, nil, nil)
	return h.addState(own, h.next.seq, l.id, version, heard, nil, int64(op), base, nil, own, nil)
}
