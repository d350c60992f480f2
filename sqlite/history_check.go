package sqlite

import (
	"fmt"
	"math"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// history checks the log of a collection: every life, state, base and gap by its checksum,
// and that each living object of the log is in the content.
func (r *Report) history(conn *sqlite3.Conn, keys *fileKeys, row collectionRow, c *Checked) error {
	known, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name='tarn_logs'")
	if err != nil || known == 0 {
		return nil // the format of the file is checked before
	}
	l := &logChecker{report: r, logSession: &logSession{
		reader: &reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}, id: row.id, row: row, keys: keys, packer: &packer{owner: row.name, keys: keys},
	}}
	defer func() {
		for _, stmt := range l.stmts {
			_ = withoutPanic(stmt.Close) // it repeats the last error
		}
	}()
	if moving, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name=?", clusteredTable(row.id)); err != nil || moving > 0 {
		return err // its states are in two tables
	}
	dictionary, err := l.packer.readDictionary(conn, row.id)
	if err == nil {
		err = l.packer.use(dictionary)
	}
	found := false
	if err == nil {
		l.state, found, err = readLog(conn, keys, row.id, row.name)
	}
	if err == nil && found {
		err = checkSchema(conn, historyDDL(row.id))
	}
	if err == nil && found {
		err = l.check()
		c.States = int(l.states)
	}
	if unreadable(err) {
		r.found(row.name, "", "its history: "+withoutKind(err))
		return nil
	}
	return err
}

// logChecker checks one log.
type logChecker struct {
	*logSession
	report *Report
	states int64
	sum    uint64
}

func (l *logChecker) found(key tarn.Key, format string, args ...any) {
	l.report.found(l.row.name, key, "its history: "+fmt.Sprintf(format, args...))
}

func (l *logChecker) check() error {
	lives := int64(0)
	type life struct {
		id, first, last int64
		key             tarn.Key
		uid             string
	}
	var all []life
	err := l.query("SELECT id, key, uid, first, last, sum FROM "+livesTable(l.id)+" ORDER BY id", func(row *sqlite3.Stmt) error {
		lives++
		f := life{row.ColumnInt64(0), row.ColumnInt64(3), row.ColumnInt64(4), tarn.Key(row.ColumnText(1)), row.ColumnText(2)}
		if lifeSum(l.keys.sums, l.row.name, f.key, f.uid, f.first, f.last) != sumOf(row.ColumnRawBlob(5)) {
			l.found(f.key, "the row of its life is damaged")
			return nil
		}
		all = append(all, f)
		return nil
	})
	if err != nil {
		return err
	}
	living := int64(0)
	for _, f := range all {
		if f.last == alive {
			living++
		}
		if err := l.life(f.id, f.first, f.last, f.key); err != nil {
			return err
		}
	}
	hidden := l.row.state.version == "" && !l.row.state.whole
	switch {
	case lives != l.state.lives:
		l.found("", "%d lives are there, and %d belong there", lives, l.state.lives)
	case l.states != l.state.states || l.sum != l.state.sum:
		l.found("", "states were lost, or are there twice: %d are there, and %d belong there", l.states, l.state.states)
	case living != l.row.state.objects && !hidden:
		l.found("", "%d objects live in it, and the content has %d", living, l.row.state.objects)
	}
	for _, table := range []string{statesTable(l.id), basesTable(l.id)} {
		n, err := number(l.conn, fmt.Sprintf("SELECT count(*) FROM %s WHERE life NOT IN (SELECT id FROM %s)", table, livesTable(l.id)))
		if err != nil {
			return err
		}
		if n > 0 {
			l.found("", "%s has %d rows that belong to no object", table, n)
		}
	}
	if err := l.moments(func(moment) error { return nil }); err != nil {
		return err
	}
	return l.gaps("seq>=0", func(changelog.Gap) error { return nil })
}

// moments calls each for the rows of tarn_moments. It checks their checksums, that they
// follow each other to the end of the log, with times and epochs that grow, and that none
// is later than its states.
func (s *logSession) moments(each func(moment) error) error {
	table, states := s.momentTable(), statesTable(s.id)
	before, time, epoch := int64(-1), int64(math.MinInt64), int64(0)
	sql := fmt.Sprintf("SELECT %s, (SELECT min(heard_ms) FROM %s WHERE seq BETWEEN m.first AND m.seq) FROM %s m ORDER BY m.seq", "m."+strings.ReplaceAll(momentColumns, ", ", ", m."), states, momentsTable(s.id))
	err := s.query(sql, func(row *sqlite3.Stmt) error {
		m, err := table.scan(row)
		if err != nil {
			return err
		}
		low, timed := m.low.(int64)
		heard, known := stored(row, 7).(int64)
		late := timed && known && low > heard
		again := m.epoch < epoch || m.epoch > s.state.epochs || timed && low <= time
		if m.first > m.seq || late || again || before >= 0 && m.first != before+1 {
			return errMoments
		}
		if before, epoch = m.seq, m.epoch; timed {
			time = low
		}
		return each(m)
	})
	if err == nil && before >= 0 && before != s.state.seq {
		err = errMoments
	}
	return err
}

var errMoments = fmt.Errorf("%w: the times of its states do not fit together", errBadRow)

// life checks the states of a life.
func (l *logChecker) life(id, begin, end int64, key tarn.Key) error {
	bad, states := "", int64(0)
	err := l.query(l.statesEvenDamaged("s.life=? ORDER BY s.seq"), func(row *sqlite3.Stmt) error {
		l.states++
		if seq, deleted := row.ColumnInt64(1), row.ColumnInt64(5) == int64(changelog.Deleted); seq < begin || seq > end || deleted != (seq == end) {
			bad = "a state outside of its life"
		}
		states++
		l.sum += sumOf(row.ColumnRawBlob(8)).number()
		if e, err := l.entry(row); damaged(err) {
			bad = fmt.Sprintf("the state at version %s: %s", e.Version, withoutKind(err))
		} else if err != nil {
			return err
		}
		return nil
	}, id)
	if err == nil && bad == "" && states == 0 {
		bad = "a life without a state"
	}
	if bad != "" {
		l.found(key, "%s", bad)
	}
	return err
}
