package sqlite

import (
	"bytes"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn/changelog"
)

// logBase is a whole state against which others are stored.
type logBase struct {
	id     int64
	sum    Sum
	packed int
	// hash is the hash of the stored base once it was verified or written, and 0 before.
	hash uint64
	// cols are the values of its columns. raw is empty until it is needed, and may be in
	// the memory of room.
	cols, raw, stored, room []byte
}

// baseSum returns the checksum of a base: of its object, together with the values of its
// columns if it has any.
func baseSum(sums *summer, object Sum, cols []byte) Sum {
	if len(cols) == 0 {
		return object
	}
	return sums.sum(func(h *sumHash) {
		h.text("base")
		h.bytes(object[:])
		h.bytes(cols)
	})
}

// clearBase forgets the base, and keeps its memory.
func (w *logWrite) clearBase() {
	w.base = logBase{cols: w.base.cols[:0], stored: w.base.stored, room: w.base.room}
}

// readBase reads the base of the last state, once.
func (w *logWrite) readBase() error {
	if w.base.packed > 0 {
		return nil
	}
	err := run(w.stmts.base, func(row *sqlite3.Stmt) error {
		w.base.sum, w.base.stored = sumOf(row.ColumnRawBlob(0)), row.ColumnBlob(1, w.base.stored[:0])
		w.base.packed, w.base.cols = len(w.base.stored), row.ColumnBlob(2, w.base.cols[:0])
		return nil
	}, w.base.id)
	if err == nil && w.base.packed == 0 {
		err = fmt.Errorf("%w: the whole state that the last one of %s is stored against", errBadRow, w.key)
	}
	return err
}

const (
	// smallDifference is how long a difference is at least: below it a new base saves
	// nothing.
	smallDifference = 160
	// largestDifference is how long a difference is at most: beyond it the next states are
	// better stored against a new base.
	largestDifference = 800
)

// unpackBase unpacks the base of the last state, once. It computes the checksum of a base the
// first time that this process reads it. After that, a hash with a seed of this process shows
// that the bytes are the same.
func (w *logWrite) unpackBase() error {
	if len(w.base.raw) > 0 {
		return nil
	}
	p, hash := w.c.packer, w.recent.hashOfBase(&w.base)
	packed, _, err := p.open(w.key, w.base.stored)
	if err == nil && hash != w.base.hash {
		err = p.verifyBase(w.key, w.base.sum, w.base.cols, packed)
	}
	if err == nil {
		w.base.hash = hash
		w.base.raw, err = p.unsqueezeTo(&w.base.room, packed)
	}
	return err
}

// encode returns a state as a packed difference against the base, and the values of columns
// that differ from the base's, nil if there are none; or a new base.
//
// A new base costs its size once, and saves with each later state what differences have
// grown to. So it is made with the probability saving/cost, which needs no counter.
func (w *logWrite) encode(seq int64, raw []byte, row *Row) (body, cols []byte, base *logBase, err error) {
	if err := inTurn(w.readBase(), w.unpackBase); err != nil {
		return nil, nil, nil, err
	}
	values := w.valuesOf(row)
	cols = differentValues(nil, w.base.cols, values)
	if bytes.Equal(w.base.raw, raw) {
		return nil, cols, nil, nil
	}
	w.buf = changelog.AppendDifference(w.buf[:0], w.base.raw, raw)
	packed := w.c.packer.squeezeDifference(w.buf)
	size, cost := len(packed)+len(cols), w.base.packed+len(values)+200
	saving := len(packed) - smallDifference
	large := size > min(cost/2, largestDifference) && size > smallDifference
	if !large && (saving <= 0 || int(uint64(seq)*0x9e3779b97f4a7c15>>40)%cost >= saving) {
		return packed, cols, nil, nil
	}
	base, err = w.makeBase(raw, values)
	return nil, nil, base, err
}

// makeBase makes a base of a state and the values of its columns.
func (w *logWrite) makeBase(raw, values []byte) (*logBase, error) {
	stored, sum, err := w.c.packer.pack(w.key, raw)
	return &logBase{sum: baseSum(w.c.db.keys.sums, sum, values), packed: len(stored), stored: stored, cols: values}, err
}

// newBase writes a base and uses it from now on.
func (w *logWrite) newBase(b *logBase, raw []byte) error {
	if err := run(w.stmts.addBase, noRow, w.life, b.sum, b.stored, b.cols); err != nil {
		return err
	}
	w.base.room = append(w.base.room[:0], raw...)
	b.room, b.raw, b.cols, b.id = w.base.room, w.base.room, append(w.base.cols[:0], b.cols...), w.conn.LastInsertRowID()
	b.hash = w.recent.hashOfBase(b)
	w.base = *b
	w.bytes += int64(b.packed+len(b.cols)) + 40
	return nil
}
