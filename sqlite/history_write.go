package sqlite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// An Identifier is a [Codec] that can tell two objects under one key apart. A history needs
// it to tell an object from one that was created later in its place.
type Identifier[T any] interface {
	UID(object T) string
}

// logWrite writes the entries of one transaction. It takes the states of one key at a
// time: open, then put and end in the order of the changes.
type logWrite struct {
	*logbook
	conn *sqlite3.Conn
	next logState

	// key is the current one, life its life, 0 if it has none.
	key   tarn.Key
	uid   string
	life  int64
	first int64
	// version, op, body and cols are those of the last state. The last two may not be read
	// yet; bodyHash is the hash of the body in any case.
	version    any
	op         changelog.Operation
	body, cols []byte
	lastKnown  bool
	bodyHash   uint64
	base       logBase
	// values is room for the values of a state.
	values []byte

	// low is the time of the oldest entry, high that of the newest; bytes about what was
	// written.
	low, high int64
	bytes     int64
	buf       []byte
	// entries are what was written, in any order; gapped says that gaps are among them.
	entries []heardEntry
	gapped  bool

	// waiting are states that are written with others, if together is true.
	waiting  []stateRow
	together bool

	// others are logs that are pruned in the same transaction; alone says that there must
	// be none.
	others []*logWrite
	alone  bool
}

func (l *logbook) begin(conn *sqlite3.Conn) *logWrite {
	return &logWrite{logbook: l, conn: conn, next: l.state, low: math.MaxInt64}
}

// open begins with the states of a key.
func (w *logWrite) open(key tarn.Key) error {
	w.key, w.life, w.uid, w.op = key, 0, "", 0
	w.clearBase()
	w.setLast(nil, nil)
	if w.recall() {
		return nil
	}
	err := run(w.stmts.life, func(row *sqlite3.Stmt) error {
		w.life, w.uid, w.first = row.ColumnInt64(0), row.ColumnText(1), row.ColumnInt64(2)
		return nil
	}, string(key))
	if err != nil || w.life == 0 {
		return err
	}
	return w.readLast()
}

// readLast reads the last state of the current life.
func (w *logWrite) readLast() error {
	if err := w.flush(); err != nil {
		return err
	}
	return run(w.stmts.last, func(row *sqlite3.Stmt) (err error) {
		w.version, w.op, w.base.id = stored(row, 1), changelog.Operation(row.ColumnInt64(2)), row.ColumnInt64(3)
		body := row.ColumnBlob(4, nil)
		if seal := w.c.db.keys.seal; seal != nil && body != nil {
			if body, err = seal.open(body, w.belongs(row.ColumnInt64(0))); err != nil {
				return err
			}
		}
		w.setLast(body, row.ColumnBlob(5, nil))
		return nil
	}, w.life)
}

func (w *logWrite) setLast(body, cols []byte) {
	w.body, w.cols, w.lastKnown, w.bodyHash = body, cols, true, w.recent.hashOf(body)
}

// heard returns a time as rows store it.
func (w *logWrite) heard(t time.Time) int64 {
	ms := t.UnixMilli()
	w.low, w.high = min(w.low, ms), max(w.high, ms)
	return ms
}

// put writes a state of the current key. It writes nothing if the log already has that state.
// seq is the number of the state; the number before it is free for the end of another object.
func (w *logWrite) put(seq int64, c stateOf, raw []byte, row *Row) error {
	if w.life != 0 && c.uid != "" && w.uid != "" && c.uid != w.uid {
		missed := c
		missed.version = ""
		if err := w.end(seq-1, missed, nil, nil); err != nil {
			return err
		}
	}
	version := storedVersion(string(c.version))
	if w.life == 0 {
		return w.begun(seq, c, version, raw, row)
	}
	body, cols, base, err := w.encode(seq, raw, row)
	if err != nil {
		return err
	}
	if base == nil && w.recent.hashOf(body) == w.bodyHash && version == w.version && w.op != changelog.Deleted {
		return nil
	}
	if base != nil {
		if err := w.newBase(base, raw); err != nil {
			return err
		}
	}
	return w.add(seq, changelog.Modified, c, version, body, cols)
}

// stateOf is what is known about a change besides its object.
type stateOf struct {
	uid     string
	version tarn.Version
	heard   time.Time
}

// begun writes the first state of a life.
func (w *logWrite) begun(seq int64, c stateOf, version any, raw []byte, row *Row) error {
	w.uid, w.first = c.uid, seq
	w.next.lives++
	if err := run(w.stmts.addLife, noRow, nil, string(w.key), w.uid, seq, int64(alive), w.lifeSum(alive)); err != nil {
		return err
	}
	w.life = w.conn.LastInsertRowID()
	base, err := w.makeBase(raw, w.valuesOf(row))
	if err != nil {
		return err
	}
	if err := w.newBase(base, raw); err != nil {
		return err
	}
	w.bytes += int64(len(w.key)+len(w.uid)) + 60
	return w.add(seq, changelog.Added, c, version, nil, nil)
}

// end writes the deletion of the current key. raw is its final state, nil if that is not
// known: then the last state stands for it.
func (w *logWrite) end(seq int64, c stateOf, raw []byte, row *Row) error {
	if w.life == 0 {
		return nil
	}
	if err := w.readBase(); err != nil { // the sum of a state has that of its base
		return err
	}
	var body, cols []byte
	if raw == nil {
		if !w.lastKnown {
			if err := w.readLast(); err != nil {
				return err
			}
		}
		body, cols = w.body, w.cols
	} else {
		var err error
		var base *logBase
		if body, cols, base, err = w.encode(seq, raw, row); err != nil {
			return err
		}
		if base != nil {
			if err := w.newBase(base, raw); err != nil {
				return err
			}
		}
	}
	if err := w.add(seq, changelog.Deleted, c, storedVersion(string(c.version)), body, cols); err != nil {
		return err
	}
	if err := run(w.stmts.endLife, noRow, w.life, seq, w.lifeSum(seq)); err != nil {
		return err
	}
	w.life = 0
	return nil
}

// stateOverhead is about how many bytes a state takes in addition to its difference and its
// values. It includes indexes and unused room in pages (bench/history).
const stateOverhead = 90

// add writes a row of tarn_states.
func (w *logWrite) add(seq int64, op changelog.Operation, c stateOf, version any, body, cols []byte) (err error) {
	heard := w.heard(c.heard)
	stored := body
	if seal := w.c.db.keys.seal; seal != nil && body != nil {
		if stored, err = seal.close(body, w.belongs(seq)); err != nil {
			return err
		}
	}
	sum := stateSum(w.c.db.keys.sums, w.c.Name, w.key, w.uid, w.life, seq, version, heard, op, w.base.id, w.base.sum, cols, body)
	if err := w.insert(stateRow{w.life, seq, version, heard, op, w.base.id, cols, sum, stored}); err != nil {
		return err
	}
	w.version, w.op = version, op
	w.setLast(body, cols)
	w.next.states++
	w.next.sum += sum.number()
	w.next.seq = max(w.next.seq, seq)
	decimal, _ := version.(int64)
	w.entries = append(w.entries, heardEntry{seq, heard, decimal})
	w.bytes += int64(len(stored)+len(cols)) + stateOverhead
	return nil
}

// belongs is the place of a sealed difference.
func (w *logWrite) belongs(seq int64) []byte { return stateOwner(w.c.Name, w.key, seq) }

func stateOwner(owner string, key tarn.Key, seq int64) []byte {
	return fmt.Appendf(nil, "%s\x00%s\x00%d", owner, key, seq)
}

func (w *logWrite) lifeSum(last int64) Sum {
	return lifeSum(w.c.db.keys.sums, w.c.Name, w.key, w.uid, w.first, last)
}

func lifeSum(sums *summer, owner string, key tarn.Key, uid string, first, last int64) Sum {
	return sums.sum(func(h *sumHash) {
		h.text("life")
		h.text(owner)
		h.text(string(key))
		h.text(uid)
		h.int(first)
		h.int(last)
	})
}

// stateSum is the checksum of a state, with the values of columns that it has. It binds the
// state to its object and to its base.
func stateSum(sums *summer, owner string, key tarn.Key, uid string, life, seq int64, version any, heard int64, op changelog.Operation, base int64, baseSum Sum, cols, body []byte) Sum {
	return sums.sum(func(h *sumHash) {
		h.text("state")
		h.text(owner)
		h.text(string(key))
		h.text(uid)
		for _, n := range []int64{life, seq, heard, int64(op), base} {
			h.int(n)
		}
		h.value(version)
		h.bytes(baseSum[:])
		h.bytes(cols)
		h.bytes(body)
	})
}

// gap writes a gap.
func (w *logWrite) gap(g changelog.Gap) error {
	if g.Cause == tarn.GapBad {
		if err := w.mergeGap(&g); err != nil {
			return err
		}
	}
	w.next.seq, w.gapped = max(w.next.seq, int64(g.Seq)), true
	w.entries = append(w.entries, heardEntry{seq: int64(g.Seq), heard: w.heard(g.Until)})
	return run(w.stmts.gap, noRow, gapValues(w.c.db.keys, w.c.id, w.c.Name, g)...)
}

// mergeGap merges g with the gap before it, if that ends where g begins: while an object is
// bad, every batch has a gap. The merged gap has the place of g, so that readers that have
// passed the earlier gap receive it again.
func (w *logWrite) mergeGap(g *changelog.Gap) error {
	before := int64(0)
	err := query(w.conn, "SELECT seq, from_version, from_ms FROM tarn_log_gaps WHERE collection=? AND section=? AND cause=? AND to_version=? AND to_ms<=? ORDER BY seq DESC LIMIT 1", func(row *sqlite3.Stmt) error {
		before, g.From = row.ColumnInt64(0), tarn.Version(row.ColumnText(1))
		g.Since = time.UnixMilli(row.ColumnInt64(2))
		return nil
	}, w.c.id, g.Section, string(g.Cause), string(g.From), g.Until.UnixMilli())
	if err != nil || before == 0 {
		return err
	}
	return execute(w.conn, "DELETE FROM tarn_log_gaps WHERE collection=? AND seq=?", w.c.id, before)
}

func gapValues(keys *fileKeys, id int64, owner string, g changelog.Gap) []any {
	from, to := g.Since.UnixMilli(), g.Until.UnixMilli()
	sum := keys.sums.sum(func(h *sumHash) {
		h.text("gap")
		for _, s := range []string{owner, g.Section, string(g.From), string(g.To), string(g.Cause)} {
			h.text(s)
		}
		for _, n := range []int64{int64(g.Seq), from, to} {
			h.int(n)
		}
	})
	return []any{id, int64(g.Seq), g.Section, string(g.From), string(g.To), string(g.Cause), from, to, sum}
}

// epochOf names the epochs of positions.
func epochOf(positions []tarn.Position) string {
	var all []string
	for _, p := range positions {
		all = append(all, p.Epoch+"\x00")
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "")
}

// commit ends the transaction's entries: all before it become visible, unless they are
// part of a first state.
func (w *logWrite) commit(positions []tarn.Position, version tarn.Version, part bool, contact time.Time) error {
	epoch := epochOf(positions)
	if !part && epoch != w.next.epoch {
		if w.next.epoch != "" {
			w.next.epochs++
		}
		w.next.epoch = epoch
	}
	if w.next.seq > w.logbook.state.seq {
		if err := w.addMoments(positions, version); err != nil {
			return err
		}
	}
	if !part {
		w.next.shown = w.next.seq
		if w.next.horizonMS > w.low { // the clock went back
			w.next.horizonMS = w.low
		}
		if w.next.horizonMS == 0 {
			w.next.horizon, w.next.horizonMS = w.next.seq, max(w.high, contact.UnixMilli())
			if w.next.states == w.next.lives { // nothing is before it
				w.next.pruned = w.next.horizon
			}
		}
		if err := w.prune(contact); err != nil {
			return err
		}
	}
	return w.writeState(w.conn, w.next)
}
