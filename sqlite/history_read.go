package sqlite

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// chunk is how many states are read in one transaction: a walk that its caller interrupts
// for long must not keep the file's log from being emptied.
const chunk = 256

// logReader reads the log of a collection; see [changelog.Log].
type logReader struct {
	name string
	// session calls a function within one snapshot of the file.
	session func(ctx context.Context, read func(*logSession) error) error
}

// Log returns the history of a collection, of this process. It does not see pending
// changes: call [DB.Flush] before it where that matters.
func (db *DB) Log(collection string) changelog.Log {
	return &logReader{collection, func(ctx context.Context, read func(*logSession) error) error {
		return db.explain("read", db.pool.with(func(r *reader) error {
			r.conn.SetInterrupt(ctx)
			defer r.conn.SetInterrupt(context.Background())
			return inSession(r, db.keys, collection, read)
		}))
	}}
}

// Log returns the history of a collection.
func (v *Reader) Log(collection string) changelog.Log {
	return &logReader{collection, func(ctx context.Context, read func(*logSession) error) error {
		return v.with(ctx, func(conn *sqlite3.Conn) error {
			r := &reader{conn: conn, stmts: map[string]*sqlite3.Stmt{}}
			defer func() {
				for _, stmt := range r.stmts {
					_ = withoutPanic(stmt.Close) // it repeats the last error
				}
			}()
			return inSession(r, v.keys, collection, read)
		})
	}}
}

// Log returns the history of the collection; see [DB.Log].
func (s *Sink[T]) Log() changelog.Log { return s.store.c.db.Log(s.store.c.Name) }

// History walks the history of one key, with its objects.
func (s *Sink[T]) History(ctx context.Context, key tarn.Key) iter.Seq2[changelog.Typed[T], error] {
	return changelog.Decode(s.Log().Of(ctx, key), s.store.codec.Decode)
}

// AsOf walks the objects that lived at a time, each in its state at that time, after the gaps
// that contain the time.
func (s *Sink[T]) AsOf(ctx context.Context, t time.Time) iter.Seq2[changelog.Typed[T], error] {
	return func(yield func(changelog.Typed[T], error) bool) {
		place, err := s.Log().AtTime(ctx, t)
		if err != nil {
			yield(changelog.Typed[T]{}, err)
			return
		}
		changelog.Decode(s.Log().AsOf(ctx, place), s.store.codec.Decode)(yield)
	}
}

// logSession reads a log in one snapshot of the file.
type logSession struct {
	*reader
	id     int64
	row    collectionRow
	state  logState
	keys   *fileKeys
	packer *packer
	// base is the last base that was unpacked.
	base struct {
		id  int64
		raw []byte
	}
	buf []byte
}

func inSession(r *reader, keys *fileKeys, name string, read func(*logSession) error) (err error) {
	if err := r.conn.Exec("BEGIN"); err != nil {
		return err
	}
	defer func() { err = first(err, r.conn.Exec("COMMIT")) }()
	row, err := readCollection(r.conn, keys, name)
	if err != nil {
		return err
	}
	if row.id == 0 {
		return fmt.Errorf("%s: %w", name, ErrNoCollection)
	}
	s := &logSession{reader: r, id: row.id, row: row, keys: keys, packer: &packer{owner: name, keys: keys}}
	found := false
	if s.state, found, err = readLog(r.conn, keys, row.id, name); err == nil && !found {
		err = fmt.Errorf("%s: %w: start its mirror with one", name, changelog.ErrNoLog)
	}
	if err == nil {
		err = notRewriting(r.conn, row)
	}
	if err != nil {
		return err
	}
	dictionary, err := s.packer.readDictionary(r.conn, row.id)
	if err == nil {
		err = s.packer.use(dictionary)
	}
	if err != nil {
		return err
	}
	return read(s)
}

// states is the statement that reads states.
func (s *logSession) states(where string) string {
	next := "(SELECT n.heard_ms FROM " + statesTable(s.id) + " n WHERE n.life=s.life AND n.seq>s.seq ORDER BY n.seq LIMIT 1)"
	return s.selectStates("coalesce(s.until_ms, "+next+")", where)
}

// statesInTurn is like states, for the states of one life: a state whose end is missing was
// valid until the next one was received. A search for that time would read each state twice.
func (s *logSession) statesInTurn(where string) string { return s.selectStates("s.until_ms", where) }

func (s *logSession) selectStates(until, where string) string {
	return fmt.Sprintf(`SELECT s.life, s.seq, s.version, s.heard_ms, %s, s.op, s.base, s.cols, s.sum, s.body, l.key, l.uid, b.sum, b.body, b.cols
		FROM %s s CROSS JOIN %s l ON l.id=s.life CROSS JOIN %s b ON b.id=s.base WHERE %s`, until, statesTable(s.id), livesTable(s.id), basesTable(s.id), where)
}

// statesEvenDamaged is like states, and includes states whose base is missing: entry reports
// them as damaged.
func (s *logSession) statesEvenDamaged(where string) string {
	return strings.Replace(s.states(where), "CROSS JOIN "+basesTable(s.id), "LEFT JOIN "+basesTable(s.id), 1)
}

// entry reads a row of states, and checks it.
func (s *logSession) entry(row *sqlite3.Stmt) (e changelog.Entry, err error) {
	seq, heard, op, baseID := row.ColumnInt64(1), row.ColumnInt64(3), changelog.Operation(row.ColumnInt64(5)), row.ColumnInt64(6)
	version := stored(row, 2)
	e.State = changelog.State{
		Seq: changelog.Seq(seq), Key: tarn.Key(row.ColumnText(10)), UID: row.ColumnText(11), Version: tarn.Version(fmt.Sprint(version)),
		Operation: op, Heard: time.UnixMilli(heard), Until: timeOf(row.ColumnInt64(4)),
	}
	if op == changelog.Deleted {
		e.Until = e.Heard
	}
	body := row.ColumnBlob(9, nil)
	if s.keys.seal != nil && body != nil {
		if body, err = s.keys.seal.open(body, stateOwner(s.row.name, e.Key, seq)); err != nil {
			return e, s.damaged(e, err)
		}
	}
	baseSum := sumOf(row.ColumnRawBlob(12))
	sum := stateSum(s.keys.sums, s.row.name, e.Key, e.UID, row.ColumnInt64(0), seq, version, heard, op, baseID, baseSum, row.ColumnRawBlob(7), body)
	if sum != sumOf(row.ColumnRawBlob(8)) {
		return e, s.damaged(e, fmt.Errorf("%w: its checksum does not fit", errBadRow))
	}
	if s.base.id != baseID {
		s.base.id = 0 // its bytes are overwritten, also by a damaged base
		raw, err := s.packer.unpackBase(e.Key, baseSum, row.ColumnRawBlob(14), row.ColumnRawBlob(13), s.base.raw)
		if err != nil {
			return e, s.damaged(e, err)
		}
		s.base.id, s.base.raw = baseID, append(s.base.raw[:0], raw...)
	}
	if e.Object, err = rebuild(s.packer, s.base.raw, body, &s.buf); err != nil {
		return e, s.damaged(e, err)
	}
	return e, nil
}

// rebuild returns a state from its base and its packed difference.
func rebuild(p *packer, base, body []byte, buf *[]byte) ([]byte, error) {
	if body == nil {
		return append([]byte(nil), base...), nil
	}
	if cap(*buf) < 1<<10 {
		*buf = make([]byte, 0, 1<<10)
	}
	difference, err := p.unsqueeze(body, *buf)
	if err != nil {
		return nil, err
	}
	raw, err := changelog.Apply(make([]byte, 0, len(base)+len(base)/8+64), base, difference)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRow, err)
	}
	return raw, nil
}

func (s *logSession) damaged(e changelog.Entry, err error) error {
	return fmt.Errorf("the history of %s, %s at version %s: %w", s.row.name, e.Key, e.Version, err)
}

// Bounds returns what is kept.
func (l *logReader) Bounds(ctx context.Context) (b changelog.Bounds, err error) {
	err = l.session(ctx, func(s *logSession) error {
		b = changelog.Bounds{
			First: changelog.Seq(s.state.horizon), Last: changelog.Seq(s.state.shown), Thinned: changelog.Seq(s.state.thinned), States: s.state.states,
			Since: timeOf(s.state.horizonMS), Until: s.row.state.lastContact,
		}
		return nil
	})
	return b, err
}

// AtTime is the place of a time.
func (l *logReader) AtTime(ctx context.Context, t time.Time) (place changelog.Place, err error) {
	err = l.session(ctx, func(s *logSession) (err error) {
		place, err = s.findTime(t)
		return err
	})
	return place, err
}

// AtVersion is the place of a version.
func (l *logReader) AtVersion(ctx context.Context, v tarn.Version) (place changelog.Place, err error) {
	err = l.session(ctx, func(s *logSession) (err error) {
		place, err = s.findVersion(v)
		return err
	})
	return place, err
}

// After walks all entries after a place.
func (l *logReader) After(ctx context.Context, place changelog.Seq) iter.Seq2[changelog.Entry, error] {
	return func(yield func(changelog.Entry, error) bool) {
		end := changelog.Seq(0)
		l.walk(ctx, yield, func(s *logSession) (all []changelog.Entry, more bool, err error) {
			if end == 0 {
				end = changelog.Seq(s.state.shown)
			}
			if first := max(s.state.horizon, s.state.thinned); place < changelog.Seq(first) {
				return nil, false, s.expired(fmt.Sprintf("entries are kept from %d on", first), fmt.Sprintf("what follows %d", place))
			}
			last := end
			err = s.query(s.states("s.seq>? AND s.seq<=? ORDER BY s.seq LIMIT ?"), func(row *sqlite3.Stmt) error {
				e, err := s.entry(row)
				all = append(all, e)
				return err
			}, int64(place), int64(end), chunk)
			if more = len(all) == chunk; more {
				last = all[chunk-1].Seq
			}
			if err == nil {
				all, err = s.addGaps(all, place, last)
			}
			place = last
			return all, more, err
		})
	}
}

// walk yields what read returns, chunk by chunk.
func (l *logReader) walk(ctx context.Context, yield func(changelog.Entry, error) bool, read func(*logSession) (all []changelog.Entry, more bool, err error)) {
	for more := true; more; {
		var all []changelog.Entry
		err := l.session(ctx, func(s *logSession) (err error) {
			all, more, err = read(s)
			return err
		})
		for _, e := range all {
			if err == nil && !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(changelog.Entry{}, err)
			return
		}
	}
}

// addGaps puts the gaps between two places among the entries.
func (s *logSession) addGaps(all []changelog.Entry, after, to changelog.Seq) (merged []changelog.Entry, err error) {
	err = s.gaps("seq>? AND seq<=?", func(g changelog.Gap) error {
		for len(all) > 0 && all[0].Seq < g.Seq {
			merged, all = append(merged, all[0]), all[1:]
		}
		merged = append(merged, changelog.Entry{State: changelog.State{Seq: g.Seq}, Gap: &g})
		return nil
	}, int64(after), int64(to))
	return append(merged, all...), err
}

// AsOf walks the states that were valid at a place.
func (l *logReader) AsOf(ctx context.Context, place changelog.Place) iter.Seq2[changelog.Entry, error] {
	return func(yield func(changelog.Entry, error) bool) {
		for _, g := range place.Gaps {
			if !yield(changelog.Entry{State: changelog.State{Seq: g.Seq}, Gap: &g}, nil) {
				return
			}
		}
		var lives []int64
		begun, known := false, slices.ContainsFunc(place.Gaps, thinned)
		l.walk(ctx, yield, func(s *logSession) (all []changelog.Entry, more bool, err error) {
			if place.Seq < changelog.Seq(s.state.horizon) {
				return nil, false, s.expired(fmt.Sprintf("states are kept from %d on", s.state.horizon), fmt.Sprintf("those at %d", place.Seq))
			}
			switch lacks := !known && s.thinnedAt(int64(place.Seq)); {
			case lacks && begun:
				return nil, false, s.expired("states were thinned out while they were read", fmt.Sprintf("those at %d", place.Seq))
			case lacks: // since the place was found
				known = true
				if all, err = s.thinnedGaps(); err != nil {
					return nil, false, err
				}
			}
			if !begun {
				begun = true
				if lives, err = s.livesAt(int64(place.Seq)); err != nil {
					return nil, false, err
				}
			}
			n := min(chunk, len(lives))
			for _, life := range lives[:n] {
				err := s.query(s.states("s.life=? AND s.seq<=? ORDER BY s.seq DESC LIMIT 1"), func(row *sqlite3.Stmt) error {
					e, err := s.entry(row)
					all = append(all, e)
					return err
				}, life, int64(place.Seq))
				if err != nil {
					return nil, false, err
				}
			}
			lives = lives[n:]
			return all, len(lives) > 0, nil
		})
	}
}

func thinned(g changelog.Gap) bool { return g.Cause == changelog.GapThinned }

// thinnedAt reports whether states that were valid at a place may have been thinned out.
// Those that were valid at the horizon stay.
func (s *logSession) thinnedAt(place int64) bool {
	return place > s.state.horizon && place < s.state.thinned
}

func (s *logSession) thinnedGaps() (all []changelog.Entry, err error) {
	err = s.gaps("cause=?", func(g changelog.Gap) error {
		all = append(all, changelog.Entry{State: changelog.State{Seq: g.Seq}, Gap: &g})
		return nil
	}, string(changelog.GapThinned))
	return all, err
}

// livesAt returns the lives at a place, by key.
func (s *logSession) livesAt(place int64) (lives []int64, err error) {
	err = s.query("SELECT id FROM "+livesTable(s.id)+" WHERE last>?1 AND first<=?1 ORDER BY key", func(row *sqlite3.Stmt) error {
		lives = append(lives, row.ColumnInt64(0))
		return nil
	}, place)
	return lives, err
}
