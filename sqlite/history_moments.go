package sqlite

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// moment is a row of tarn_moments: the entries of a commit, or a part of those of a large
// one.
//
// A time is found by the lowest time of a moment, and then among its entries. So the commit
// of a first state or of a relist has several moments, and a search reads mostEntries entries
// at most.
type moment struct {
	// seq is the last entry, first the first one.
	seq, first int64
	// low is the time of the oldest entry, nil if a later moment has an older one. number is
	// the version after the last entry, nil if it is no number or not known.
	low, number any
	epoch       int64
	// bytes is about what was written.
	bytes int64
}

const (
	// mostEntries bounds the entries of a moment, which are read to find a time among them.
	mostEntries   = 1024
	momentColumns = "seq, first, low_ms, number, epoch, bytes, sum"
)

// momentTable is the table of the moments of one log.
type momentTable struct {
	conn *sqlite3.Conn
	// keys verify the rows that are read; nil if they are not known.
	keys  *fileKeys
	id    int64
	owner string
}

func (w *logWrite) moments() momentTable {
	return momentTable{w.conn, w.c.db.keys, w.c.id, w.c.Name}
}

func (s *logSession) momentTable() momentTable {
	return momentTable{s.conn, s.keys, s.id, s.row.name}
}

// sum is the checksum of a row.
func (t momentTable) sum(m moment) Sum {
	return t.keys.sums.sum(func(h *sumHash) {
		h.text("moment")
		h.text(t.owner)
		for _, n := range []int64{m.seq, m.first, m.epoch, m.bytes} {
			h.int(n)
		}
		h.value(m.low)
		h.value(m.number)
	})
}

func (t momentTable) values(m moment) []any {
	return []any{m.seq, m.first, m.low, m.number, m.epoch, m.bytes, t.sum(m)}
}

// scan reads a row that begins with momentColumns.
func (t momentTable) scan(row *sqlite3.Stmt) (moment, error) {
	m := moment{row.ColumnInt64(0), row.ColumnInt64(1), stored(row, 2), stored(row, 3), row.ColumnInt64(4), row.ColumnInt64(5)}
	if t.keys != nil && t.sum(m) != sumOf(row.ColumnRawBlob(6)) {
		return m, fmt.Errorf("%w (%s)", errMoments, t.owner)
	}
	return m, nil
}

func (t momentTable) all(where string, args ...any) (all []moment, err error) {
	err = query(t.conn, "SELECT "+momentColumns+" FROM "+momentsTable(t.id)+" WHERE "+where, func(row *sqlite3.Stmt) error {
		m, err := t.scan(row)
		all = append(all, m)
		return err
	}, args...)
	return all, err
}

// one returns the first row; found is false if there is none.
func (t momentTable) one(where string, args ...any) (m moment, found bool, err error) {
	all, err := t.all(where+" LIMIT 1", args...)
	if err != nil || len(all) == 0 {
		return moment{}, false, err
	}
	return all[0], true, nil
}

// follows checks the moment after the one that was found, or the first moment if none was
// found. If that moment is missing, or if its time or version was changed, the search has
// found the one before it instead. end is the end of what readers see.
func (t momentTable) follows(m moment, end int64) error {
	next, found, err := t.one("seq>? ORDER BY seq", m.seq)
	if err == nil && m.seq > 0 && (found && next.first != m.seq+1 || !found && m.seq < end) {
		err = fmt.Errorf("%w (%s)", errMoments, t.owner)
	}
	return err
}

const addMoment = "INSERT INTO %s (" + momentColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?)"

// supersede removes the times of moments that are not older than an entry after them: the
// clock went back.
func (t momentTable) supersede(low int64) error {
	later, err := t.all("low_ms>=?", low)
	for _, m := range later {
		if err == nil {
			m.low = nil
			err = execute(t.conn, "UPDATE "+momentsTable(t.id)+" SET low_ms=NULL, sum=?2 WHERE seq=?1", m.seq, t.sum(m))
		}
	}
	return err
}

// placeOfTime returns the place of the last entry that was received at or before a time, in
// Unix milliseconds, and that readers see.
//
// The times of moments grow with the entries. Where the clock went back, the moments of later
// times lost their times, because the entries after the jump are newer than they are.
func (t momentTable) placeOfTime(ms, shown int64) (place int64, err error) {
	m, found, err := t.one("low_ms<=? ORDER BY low_ms DESC", ms)
	if err == nil {
		err = t.follows(m, shown)
	}
	if err != nil || !found {
		return 0, err
	}
	states := statesTable(t.id)
	place, err = number(t.conn, fmt.Sprintf("SELECT coalesce(max(seq), 0) FROM %s WHERE seq BETWEEN ? AND ? AND heard_ms<=?", states), m.first, m.seq, ms)
	gap, err2 := number(t.conn, "SELECT coalesce(max(seq), 0) FROM tarn_log_gaps WHERE collection=? AND seq BETWEEN ? AND ? AND to_ms<=?", t.id, m.first, m.seq, ms)
	return min(max(place, gap, m.first-1), shown), first(err, err2)
}

// heardEntry has what moments need of an entry of a commit.
type heardEntry struct {
	seq, heard int64
	// version is 0 if it is not a number.
	version int64
}

// split makes moments of a commit with these entries. after is the version before the
// commit if the commit may have been cut anywhere, so that the version of each entry is
// that of the copy after it, as long as they grow; 0 if not.
func (m moment) split(entries []heardEntry, after int64) []moment {
	if len(entries) <= mostEntries {
		return []moment{m}
	}
	slices.SortFunc(entries, func(a, b heardEntry) int { return cmp.Compare(a.seq, b.seq) })
	ordered := after > 0
	for _, e := range entries {
		ordered = ordered && e.version > after
		after = e.version
	}
	all, begin := []moment{}, m.first
	for part := range slices.Chunk(entries, mostEntries) {
		last := part[len(part)-1]
		next := moment{seq: last.seq, first: begin, epoch: m.epoch, bytes: m.bytes * int64(len(part)) / int64(len(entries))}
		low := int64(math.MaxInt64)
		for _, e := range part {
			low = min(low, e.heard)
		}
		if next.low = low; ordered {
			next.number = last.version
		}
		all, begin = append(all, next), last.seq+1
	}
	all[len(all)-1].seq, all[len(all)-1].number = m.seq, m.number
	keepGrowing(all)
	return all
}

// keepGrowing removes the time of a moment if a later moment has an older entry.
func keepGrowing(all []moment) {
	low := int64(math.MaxInt64)
	for i := len(all) - 1; i >= 0; i-- {
		if at, timed := all[i].low.(int64); timed && at < low {
			low = at
		} else {
			all[i].low = nil
		}
	}
}

// addMoments writes the moments of a transaction.
func (w *logWrite) addMoments(positions []tarn.Position, version tarn.Version) error {
	if err := w.moments().supersede(w.low); err != nil {
		return err
	}
	after := int64(0)
	if len(positions) == 1 && !w.gapped && w.next.epochs == w.logbook.state.epochs {
		after, _ = storedVersion(string(w.c.known().version)).(int64)
	}
	all := moment{w.next.seq, w.logbook.state.seq + 1, w.low, versionNumber(string(version)), w.next.epochs, w.bytes}
	for _, m := range all.split(w.entries, after) {
		if err := run(w.stmts.moment, noRow, w.moments().values(m)...); err != nil {
			return err
		}
	}
	return nil
}

// migrate gives the moments of a format before 7 their checksums, and splits those of large
// commits.
func (t momentTable) migrate(p *progress) error {
	table := momentsTable(t.id)
	if err := t.conn.Exec("ALTER TABLE " + table + " ADD COLUMN sum BLOB"); err != nil {
		return err
	}
	unverified := t
	unverified.keys = nil
	old, err := unverified.all("true ORDER BY seq")
	if err != nil {
		return err
	}
	var all []moment
	for _, m := range old {
		entries, err := t.entries(m)
		if err != nil {
			return err
		}
		all = append(all, m.split(entries, 0)...)
		p.report(t.owner, m.seq, old[len(old)-1].seq)
	}
	keepGrowing(all)
	if err := t.conn.Exec("DELETE FROM " + table); err != nil {
		return err
	}
	stmt, _, err := t.conn.Prepare(fmt.Sprintf(addMoment, table))
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }() // it repeats the last error
	for _, m := range all {
		if err := run(stmt, noRow, t.values(m)...); err != nil {
			return err
		}
	}
	return nil
}

// entries returns the entries of a moment, if it is one that may be split.
func (t momentTable) entries(m moment) (all []heardEntry, err error) {
	if m.low == nil || m.seq-m.first < mostEntries {
		return nil, nil
	}
	sql := fmt.Sprintf("SELECT seq, heard_ms FROM %s WHERE seq BETWEEN ?1 AND ?2 UNION ALL SELECT seq, to_ms FROM tarn_log_gaps WHERE collection=?3 AND seq BETWEEN ?1 AND ?2", statesTable(t.id))
	err = query(t.conn, sql, func(row *sqlite3.Stmt) error {
		all = append(all, heardEntry{seq: row.ColumnInt64(0), heard: row.ColumnInt64(1)})
		return nil
	}, m.first, m.seq, t.id)
	return all, err
}
