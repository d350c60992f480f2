package sqlite

import (
	"bytes"
	"hash/maphash"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// recentLives remembers the last states of lives that were written lately, and their rows
// in the content, so that they need not be read (bench/history). It is forgotten when a
// transaction fails.
//
// All lives are in one slice, in places of a fixed size that are used again in turn. As
// allocations of their own, made among many short-lived ones, they held four times their
// size in memory.
type recentLives struct {
	seed maphash.Seed
	// at has the place of a key by its hash.
	at    map[uint64]int32
	lives []recentLife
	// next is the place that is used again next, once all are taken.
	next int
}

const (
	// mostRecent bounds the lives that are remembered, at about 350 bytes each.
	mostRecent = 20_000
	// mostNames is the room for the key and the uid of a life. One whose names are longer is
	// not remembered.
	mostNames = 160
	// mostParts is the room for the sums of the wide values of a row. A row with more of them
	// is not remembered.
	mostParts = 4 * len(WideValue{}.Sum)
	// mostChanges is the room for the values of columns in which a row differs from its base.
	// If a row has more of them, its indexed values are read again.
	mostChanges = 31
)

// recentLife is what is known of a life without reading it.
type recentLife struct {
	hash                       uint64
	life, first, base, version int64
	// body is the hash of the last difference, or 0 without one. verified is the hash of the
	// base, or 0 until this process has verified it.
	body, verified uint64
	op             changelog.Operation
	key, uid       uint8
	names          [mostNames]byte
	content        recentRow
}

// recentRow is a [storedRow]; its id is 0 if it is not known.
type recentRow struct {
	id, found int64
	sum       uint64
	size      uint8
	parts     [mostParts]byte
	// base is the hash of the base of the row's state, 0 if it is not known. cols are the
	// values of columns that differ from those of this base.
	base    uint64
	changes uint8
	cols    [mostChanges]byte
}

func newRecentLives() recentLives { return recentLives{seed: maphash.MakeSeed()} }

// find returns the place of a key, -1 if it is not remembered.
func (r *recentLives) find(key tarn.Key) int {
	at, ok := r.at[maphash.String(r.seed, string(key))]
	if !ok || string(r.lives[at].names[:r.lives[at].key]) != string(key) {
		return -1
	}
	return int(at)
}

// place returns the place for a key.
func (r *recentLives) place(key tarn.Key) int {
	if r.at == nil {
		r.at = map[uint64]int32{}
	}
	hash := maphash.String(r.seed, string(key))
	if at := r.find(key); at >= 0 {
		return at
	}
	if at, other := r.at[hash]; other {
		r.lives[at] = recentLife{hash: hash}
		return int(at)
	}
	at := len(r.lives)
	if at < mostRecent {
		r.lives = append(r.lives, recentLife{})
	} else {
		at, r.next = r.next, (r.next+1)%mostRecent
		delete(r.at, r.lives[at].hash)
	}
	r.lives[at], r.at[hash] = recentLife{hash: hash}, int32(at)
	return at
}

// forget forgets a key. Its place is used again in its turn.
func (r *recentLives) forget(key tarn.Key) {
	if at := r.find(key); at >= 0 {
		delete(r.at, r.lives[at].hash)
		r.lives[at] = recentLife{}
	}
}

// forgetAll forgets all.
func (r *recentLives) forgetAll() { *r = recentLives{seed: r.seed} }

// hashOf is a hash of a difference, and 0 without one. Its seed is the process's own, so that
// nobody can make two differences with the same hash.
func (r *recentLives) hashOf(body []byte) uint64 {
	if body == nil {
		return 0
	}
	return maphash.Bytes(r.seed, body) | 1
}

// hashOfBase is a hash of a stored base with the values of its columns.
func (r *recentLives) hashOfBase(b *logBase) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.Write(b.sum[:]) // never fails, like those after it
	_, _ = h.Write(b.cols)
	_, _ = h.Write(b.stored)
	return h.Sum64() | 1
}

// recall restores what is remembered about the current key. It reports whether there is
// anything.
func (w *logWrite) recall() bool {
	r := &w.recent
	at := r.find(w.key)
	if at < 0 {
		return false
	}
	l := &r.lives[at]
	w.life, w.first, w.base.id, w.version, w.op, w.bodyHash = l.life, l.first, l.base, l.version, l.op, l.body
	w.uid = string(l.names[l.key : l.key+l.uid])
	w.body, w.cols, w.lastKnown, w.base.hash = nil, nil, false, l.verified
	return true
}

// close ends the states of a key, and remembers its life for the next commit.
func (w *logWrite) close() {
	r := &w.recent
	version, decimal := w.version.(int64)
	if w.life == 0 || !decimal || len(w.key)+len(w.uid) > mostNames {
		r.forget(w.key)
		return
	}
	at := r.place(w.key)
	l := &r.lives[at]
	l.life, l.first, l.base, l.version, l.op, l.body, l.verified = w.life, w.first, w.base.id, version, w.op, w.bodyHash, w.base.hash
	l.key, l.uid = uint8(len(w.key)), uint8(len(w.uid))
	copy(l.names[copy(l.names[:], w.key):], w.uid)
}

// writeContent writes a state to the content. For a life that is remembered, it knows the
// existing row, and remembers the new one.
func (w *logWrite) writeContent(e entry, next *state) (err error) {
	var known *recentRow
	if at := w.recent.find(e.key); at >= 0 {
		known = &w.recent.lives[at].content
	}
	before := known.stored()
	if before.id == 0 {
		if before, err = w.c.findRow(e.key); err != nil {
			return err
		}
	} else if w.lastKnown && known.base != 0 && known.base == w.base.hash {
		before.changed, before.compared = w.changedParts(known.cols[:known.changes], w.cols), true
	}
	id, err := w.c.writeOver(w.conn, before, e, next)
	known.remember(storedRow{id: id, sum: e.sum.number(), found: e.found, parts: e.parts})
	if known != nil && w.lastKnown && w.indexed != nil && len(w.cols) <= mostChanges {
		known.base, known.changes = w.base.hash, uint8(copy(known.cols[:], w.cols))
	}
	return err
}

// partOf returns the part of a row that a value belongs to, none if its column has no index.
func (l *logbook) partOf(v loggedValue) rowParts {
	if v.number >= len(l.indexed) {
		return allParts
	}
	return l.indexed[v.number]
}

// changedParts returns which parts of a row have changed. before and after are the values of
// columns that differ from those of the same base.
func (l *logbook) changedParts(before, after []byte) (parts rowParts) {
	b, before, more := nextValue(before)
	a, after, left := nextValue(after)
	for more || left {
		switch {
		case !left || more && b.number < a.number:
			parts |= l.partOf(b)
			b, before, more = nextValue(before)
		case !more || a.number < b.number:
			parts |= l.partOf(a)
			a, after, left = nextValue(after)
		default:
			if !bytes.Equal(a.entry, b.entry) {
				parts |= l.partOf(a)
			}
			b, before, more = nextValue(before)
			a, after, left = nextValue(after)
		}
	}
	return parts
}

// stored is the row, empty if it is not known.
func (r *recentRow) stored() storedRow {
	if r == nil {
		return storedRow{}
	}
	return storedRow{id: r.id, sum: r.sum, found: r.found, parts: r.parts[:r.size]}
}

// remember replaces the row, if there is room for one.
func (r *recentRow) remember(row storedRow) {
	if r == nil {
		return
	}
	if *r = (recentRow{}); len(row.parts) <= mostParts {
		*r = recentRow{id: row.id, found: row.found, sum: row.sum, size: uint8(len(row.parts))}
		copy(r.parts[:], row.parts)
	}
}
