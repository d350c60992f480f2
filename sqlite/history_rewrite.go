package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// A Rewriter is a [Codec] that can bring states of the past into the shape that objects
// have now. A history needs it when other fields are kept than before: what is left out
// now must not stay in the past.
type Rewriter[T any] interface {
	// Rewrite returns a function that decodes bytes of the collection as they were written
	// before, and leaves out what is left out now. The function is nil if the bytes can stay
	// unchanged, because they have nothing that is left out. known is false if the codec
	// cannot tell: then the past is dropped.
	Rewrite(before Holding) (rewrite func(raw []byte) (T, error), known bool)
}

// rewriteFunc returns the bytes of a state in its new shape, which are valid until the next
// call, and its row.
type rewriteFunc func(raw []byte) ([]byte, Row, error)

// rewriteFrom returns what turns states of an earlier identity into those of the present
// one.
func (s *Store[T]) rewriteFrom(identity string) (rewrite rewriteFunc, known bool) {
	rewriter, ok := s.codec.(Rewriter[T])
	if !ok {
		return nil, false
	}
	decode, known := rewriter.Rewrite(described(s.c.Name, identity))
	if decode == nil {
		return nil, known
	}
	return func(raw []byte) (made []byte, row Row, err error) {
		defer recoverTo(&err)
		object, err := decode(raw)
		if err != nil {
			return nil, row, err
		}
		var e entry
		err = s.encodeObject(&e, object)
		return s.buf, e.row, err
	}, known
}

// described returns what the identity of a collection says about it.
func described(name, identity string) Holding {
	h := Holding{Collection: Collection{Name: name}}
	h.Identity, h.Schema, _ = strings.Cut(identity, "\n")
	h.Schema, h.Tables, _ = strings.Cut(h.Schema, "\n")
	return h
}

func rewriteTable(id int64) string { return fmt.Sprintf("tarn_rewrite_%d", id) }

func rewriteDDL(id int64) string {
	return "CREATE TABLE " + rewriteTable(id) + " (id INTEGER PRIMARY KEY, life INTEGER NOT NULL, last INTEGER NOT NULL, before TEXT NOT NULL, proof BLOB NOT NULL)"
}

// rewriting records how far the states of a log were rewritten. It is stored in a table that
// exists while states are left to rewrite, so that the next process can continue after a
// kill.
//
// Why not one transaction: the log beside the file would grow to the size of the history.
type rewriting struct {
	// life is the last life that was rewritten, and last the last one to rewrite. Rewritten
	// lives get new ids, after last.
	life, last int64
	// before is the identity that the states were written with.
	before string
}

func (r rewriting) proof(keys *fileKeys, owner string) Sum {
	return keys.sums.sum(func(h *sumHash) {
		h.text("rewriting")
		h.text(owner)
		h.int(r.life)
		h.int(r.last)
		h.text(r.before)
	})
}

func (c *collection) writeRewriting(conn *sqlite3.Conn, r rewriting) error {
	return execute(conn, "REPLACE INTO "+rewriteTable(c.id)+" (id, life, last, before, proof) VALUES (1, ?, ?, ?, ?)", r.life, r.last, r.before, r.proof(c.db.keys, c.Name))
}

// readRewriting reads how far the states were rewritten; it is nil if none are left.
func (c *collection) readRewriting(conn *sqlite3.Conn) (r *rewriting, err error) {
	n, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name=?", rewriteTable(c.id))
	if err != nil || n == 0 {
		return nil, err
	}
	if err := checkSchema(conn, []string{rewriteDDL(c.id)}); err != nil {
		return nil, err
	}
	err = query(conn, "SELECT life, last, before, proof FROM "+rewriteTable(c.id), func(row *sqlite3.Stmt) error {
		r = &rewriting{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnText(2)}
		if r.proof(c.db.keys, c.Name) != sumOf(row.ColumnRawBlob(3)) {
			return fmt.Errorf("%w: how far the history of %s was rewritten", errBadRow, c.Name)
		}
		return nil
	})
	if err == nil && r == nil {
		err = fmt.Errorf("%w: %s has no row", errBadRow, rewriteTable(c.id))
	}
	return r, err
}

// notRewriting fails while the states of a log are rewritten or converted, or if a process
// was killed while it did that: some states still have what is left out now, or their
// columns cannot be read.
func notRewriting(conn *sqlite3.Conn, row collectionRow) error {
	n, err := number(conn, "SELECT count(*) FROM sqlite_schema WHERE name=?", rewriteTable(row.id))
	if err == nil && n > 0 {
		err = fmt.Errorf("%s: %w: fields that are not kept any more are being removed from its history: ask again when its mirror has done that", row.name, changelog.ErrAhead)
	}
	if err != nil {
		return err
	}
	if old, err := converting(conn, row.id); err != nil || old {
		return first(err, fmt.Errorf("%s: %w: its history is being brought into the present format: ask again when its mirror has done that", row.name, changelog.ErrAhead))
	}
	return nil
}

// keepsLog reports whether the log can stay when the content of another identity is dropped.
// If that requires a rewrite of its states, keepsLog notes that.
func (c *collection) keepsLog(conn *sqlite3.Conn, row collectionRow) (bool, error) {
	before := objectsOf(row.identity)
	if before == objectsOf(c.identity) {
		return true, nil
	}
	// If a log was rewritten in part, it is unknown which state has which shape.
	if pending, err := c.readRewriting(conn); err != nil || pending != nil || c.rewriter == nil {
		return false, err
	}
	rewrite, known := c.rewriter(before)
	if !known || rewrite == nil {
		return known, nil
	}
	last, err := number(conn, "SELECT coalesce(max(id), 0) FROM "+livesTable(row.id))
	if err != nil {
		return false, err
	}
	return true, first(conn.Exec(rewriteDDL(row.id)), c.writeRewriting(conn, rewriting{last: last, before: before}))
}

// finishRewriting rewrites the states that are left to rewrite, in several transactions.
// Other collections can be written between them, and readers are refused until its end.
//
// Why the collection does not open before that: its content was dropped, and the list that
// brings it back writes to nearly every life. A life must be rewritten before a state is
// added to it, so that list would have to wait for the same work.
func (c *collection) finishRewriting() error {
	begin, states := time.Now(), int64(0)
	for {
		n, more, err := c.rewriteSome()
		if states += n; err != nil {
			return fmt.Errorf("sqlite: the history of %s has fields that are not kept any more, and cannot be rewritten: %w", c.Name, err)
		}
		if !more {
			break
		}
	}
	if states > 0 {
		c.db.logEvent(slog.LevelInfo, "the history was rewritten, because fewer fields are kept", "collection", c.Name, "states", states, "took", time.Since(begin).Round(time.Millisecond))
	}
	return nil
}

// rewriteSome rewrites the states of some lives in one transaction.
func (c *collection) rewriteSome() (states int64, more bool, err error) {
	db := c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := first(db.usable(), db.room()); err != nil || c.log == nil {
		return 0, false, err
	}
	var next *logWrite
	err = db.transact(func(conn *sqlite3.Conn) error {
		r, err := c.readRewriting(conn)
		if err != nil || r == nil {
			return err
		}
		next = c.log.begin(conn)
		if states, err = next.rewriteLives(r); err != nil {
			return err
		}
		if more = r.life < r.last; more {
			err = c.writeRewriting(conn, *r)
		} else {
			err = conn.Exec("DROP TABLE " + rewriteTable(c.id))
		}
		return first(err, next.writeState(conn, next.next))
	})
	c.log.recent.forgetAll()
	if damaged(err) {
		return 0, false, db.rescue(err)
	}
	if err != nil || next == nil {
		return 0, false, err
	}
	if c.log.state = next.next; !more {
		db.erase()
	}
	return states, more, nil
}

// rewrittenAtOnce is how many states are rewritten in one transaction. Tests change it.
var rewrittenAtOnce int64 = 2000

// rewriteLives rewrites the next lives, and notes how far it came.
func (w *logWrite) rewriteLives(r *rewriting) (states int64, err error) {
	rewrite, known := w.c.rewriter(r.before)
	if !known || rewrite == nil {
		rewrite = func([]byte) ([]byte, Row, error) {
			return nil, Row{}, errors.New("it is not known how to rewrite it")
		}
	}
	l := &lifeRewriter{logWrite: w, rewrite: rewrite, session: &logSession{
		reader: &reader{conn: w.conn, stmts: map[string]*sqlite3.Stmt{}}, id: w.c.id, row: collectionRow{name: w.c.Name}, keys: w.c.db.keys, packer: w.c.packer,
	}}
	defer func() {
		for _, stmt := range l.session.stmts {
			_ = stmt.Close() // it repeats the last error
		}
	}()
	for l.states < rewrittenAtOnce && r.life < r.last {
		next := int64(0)
		err := query(w.conn, "SELECT id, key, uid, last FROM "+livesTable(w.c.id)+" WHERE id>? AND id<=? ORDER BY id LIMIT 1", func(row *sqlite3.Stmt) error {
			next, l.end = row.ColumnInt64(0), row.ColumnInt64(3)
			w.key, w.uid = tarn.Key(row.ColumnText(1)), row.ColumnText(2)
			return nil
		}, r.life, r.last)
		if err != nil {
			return l.states, err
		}
		if next == 0 {
			r.life = r.last
			break
		}
		if err := l.life(next); err != nil {
			return l.states, err
		}
		r.life = next
	}
	return l.states, nil
}

// lifeRewriter writes lives again, each under a new id. It reads a state, removes it, and
// writes it again at its place before it reads the next one. So it never holds a whole life
// in memory.
type lifeRewriter struct {
	*logWrite
	session *logSession
	rewrite rewriteFunc
	states  int64
	// end is the end of the life.
	end int64
	// before is the last state that was written, lost the gap after it.
	before changelog.State
	lost   *changelog.Gap
}

// life rewrites one life.
func (l *lifeRewriter) life(id int64) error {
	w := l.logWrite
	w.life, w.op = 0, 0
	w.clearBase()
	w.setLast(nil, nil)
	l.before, l.lost = changelog.State{}, nil
	err := l.session.query(l.session.statesEvenDamaged("s.life=? ORDER BY s.seq"), func(row *sqlite3.Stmt) error {
		l.states++
		e, err := l.session.entry(row)
		if err != nil && !damaged(err) {
			return err
		}
		version := stored(row, 2)
		if err := l.takeOut(e.State); err != nil {
			return err
		}
		if err != nil {
			return l.lose(e.State, changelog.GapDamaged)
		}
		raw, values, err := l.rewrite(e.Object)
		if err != nil {
			return l.lose(e.State, changelog.GapDropped)
		}
		return l.put(e.State, version, raw, &values)
	}, id)
	if err != nil {
		return err
	}
	if err := first(l.supersede(time.Time{}), l.endLost("", time.Now())); err != nil {
		return err
	}
	w.life = id
	return w.forget()
}

// takeOut removes a state of the old life, because the state of the new life has the same
// place.
func (l *lifeRewriter) takeOut(s changelog.State) error {
	if err := l.uncount("seq=?", int64(s.Seq)); err != nil {
		return err
	}
	return execute(l.conn, "DELETE FROM "+statesTable(l.c.id)+" WHERE seq=?", int64(s.Seq))
}

// put writes a state again.
func (l *lifeRewriter) put(s changelog.State, version any, raw []byte, row *Row) error {
	w, seq := l.logWrite, int64(s.Seq)
	about := stateOf{version: s.Version, heard: s.Heard}
	if err := l.endLost(s.Version, s.Heard); err != nil {
		return err
	}
	var body, cols []byte
	if w.life == 0 {
		base, err := w.makeBase(raw, w.valuesOf(row))
		if err != nil {
			return err
		}
		if err := inTurn(l.begin(seq), func() error { return w.newBase(base, raw) }); err != nil {
			return err
		}
	} else {
		var base *logBase
		var err error
		if body, cols, base, err = w.encode(seq, raw, row); err != nil {
			return err
		}
		if base == nil && bytes.Equal(body, w.body) && version == w.version && s.Operation != changelog.Deleted {
			l.before.Until = s.Until // they differed only in what is left out now
			return nil
		}
		if base != nil {
			if err := w.newBase(base, raw); err != nil {
				return err
			}
		}
	}
	if err := l.supersede(s.Heard); err != nil {
		return err
	}
	l.before = s
	return w.add(seq, s.Operation, about, version, body, cols)
}

// begin writes the row of the life.
func (l *lifeRewriter) begin(seq int64) error {
	w := l.logWrite
	w.first = seq
	w.next.lives++
	err := run(w.stmts.addLife, noRow, nil, string(w.key), w.uid, seq, l.end, w.lifeSum(l.end))
	w.life = w.conn.LastInsertRowID()
	return err
}

// supersede notes when the last written state was superseded, unless the state that is
// written now superseded it.
func (l *lifeRewriter) supersede(by time.Time) error {
	if b := l.before; b.Seq > 0 && !b.Until.IsZero() && !b.Until.Equal(by) && b.Operation != changelog.Deleted {
		return execute(l.conn, "UPDATE "+statesTable(l.c.id)+" SET until_ms=? WHERE life=? AND seq=?", b.Until.UnixMilli(), l.logWrite.life, int64(b.Seq))
	}
	return nil
}

// lose notes a state that cannot be kept. A deletion is kept: the state before it stands for
// its object.
func (l *lifeRewriter) lose(s changelog.State, cause tarn.GapCause) error {
	w := l.logWrite
	if s.Operation == changelog.Deleted && w.life != 0 {
		if err := first(l.endLost(s.Version, s.Heard), w.readBase(), l.supersede(s.Heard)); err != nil {
			return err
		}
		l.before = s
		return w.add(int64(s.Seq), s.Operation, stateOf{version: s.Version, heard: s.Heard}, storedVersion(string(s.Version)), w.body, w.cols)
	}
	if l.lost == nil {
		from, err := l.versionBefore(int64(s.Seq))
		if err != nil {
			return err
		}
		l.lost = &changelog.Gap{Seq: s.Seq, Gap: tarn.Gap{From: from, Cause: cause}, Since: s.Heard.Add(-time.Millisecond)}
	}
	return nil
}

// versionBefore returns the version of the log's entry before a place.
func (l *lifeRewriter) versionBefore(seq int64) (version tarn.Version, err error) {
	states := statesTable(l.c.id)
	err = query(l.conn, fmt.Sprintf("SELECT version FROM %s WHERE seq<? ORDER BY seq DESC LIMIT 1", states), func(row *sqlite3.Stmt) error {
		version = tarn.Version(row.ColumnText(0))
		return nil
	}, seq)
	return version, err
}

// endLost writes the gap of lost states, which ends with a state that is kept.
func (l *lifeRewriter) endLost(to tarn.Version, until time.Time) error {
	if l.lost == nil {
		return nil
	}
	g := *l.lost
	if g.To, g.Until, l.lost = to, until, nil; g.Since.After(until) {
		g.Since = until
	}
	return l.gap(g)
}
