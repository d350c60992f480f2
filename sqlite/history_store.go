package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
)

// commitLogged is Commit of a sink with a history: it writes every state, in one transaction
// with the content. It writes a large whole state in several transactions, and readers see
// their entries only after the last one.
func (s *Sink[T]) commitLogged(b tarn.Batch[T]) error {
	var at tarn.Positions
	for _, p := range b.Positions {
		at.Move(p)
	}
	before, positions := s.store.c.snapshot(), s.store.c.encodeTrusted(at)
	if !b.Again {
		s.moves = before.positions != positions
	} else if s.moves && before.whole && before.version != "" && before.positions == positions {
		return nil // it took effect
	}
	next := batch[T]{changes: b.Changes, positions: at, lastContact: b.LastContact, gaps: b.Gaps}
	if b.Whole {
		next.whole = keysOf(b.Changes, nil)
		clear(s.store.unwritten)
	}
	var bad tarn.ObjectErrors
	if before.objects == 0 || b.Whole {
		for len(next.changes) > largeState {
			err := s.store.write(batch[T]{changes: next.changes[:largeState], part: true, lastContact: b.LastContact, gaps: next.gaps})
			if !tarn.Taken(err) {
				return err
			}
			bad = withRefused(bad, err)
			next.changes, next.gaps = next.changes[largeState:], nil
		}
	}
	return ended(bad, s.store.write(next))
}

// keysOf updates the keys of the existing objects by some changes.
func keysOf[T any](changes []tarn.Change[T], keys map[tarn.Key]struct{}) map[tarn.Key]struct{} {
	if keys == nil {
		keys = make(map[tarn.Key]struct{}, len(changes))
	}
	for _, c := range changes {
		if c.Type == tarn.Delete {
			delete(keys, c.Key)
		} else {
			keys[c.Key] = struct{}{}
		}
	}
	return keys
}

// writeLogged writes a batch to the content and to the log. It writes the states of one key
// one after the other, so that each is stored against what is already in memory. Their
// numbers follow their order in the batch.
func (s *Store[T]) writeLogged(conn *sqlite3.Conn, b batch[T], next *state) (w *logWrite, bad tarn.ObjectErrors, err error) {
	w = s.c.log.begin(conn)
	w.together = true
	if b.all && b.whole == nil {
		b.whole = keysOf(b.changes, nil)
	}
	if from := s.c.known(); b.whole != nil && len(b.gaps) == 0 && w.next.shown > 0 && from.version != next.version {
		b.gaps = []tarn.Gap{{From: from.version, To: next.version, Cause: tarn.GapReconciled}}
	}
	numbers, err := s.writeGaps(w, b)
	if err != nil {
		return w, nil, err
	}
	order := make([]int, len(b.changes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(strings.Compare(string(b.changes[i].Key), string(b.changes[j].Key)), i-j)
	})
	for left := order; len(left) > 0; {
		n, err := s.encodeAhead(b, left)
		if err != nil {
			return w, nil, err
		}
		failed, err := s.writeKeys(w, b, left[:n], numbers, next)
		if err != nil {
			return w, nil, err
		}
		bad, left = append(bad, failed...), left[n:]
	}
	if err := w.flush(); err != nil {
		return w, nil, err
	}
	if b.whole != nil {
		if err := s.removeOthers(w, b, next); err != nil {
			return w, nil, err
		}
	}
	s.forgetAhead()
	if err := inTurn(w.flush(), func() error { return w.commit(b.positions.All(), next.version, b.part, b.contact()) }); err != nil {
		return w, nil, err
	}
	next.whole = s.whole(b) // only now all objects are encoded
	return w, bad, s.c.writeRow(conn, "REPLACE INTO", *next, s.c.label)
}

// known returns the last state that the log knows: the state of the content or, if the
// content was dropped and the log kept, the state before that.
func (c *collection) known() state {
	if c.state.version == "" {
		return c.prior
	}
	return c.state
}

func (b batch[T]) contact() time.Time {
	if b.lastContact.IsZero() {
		return time.Now()
	}
	return b.lastContact
}

// heard returns when a change was received.
func (b batch[T]) heard(i int) time.Time {
	if t := b.changes[i].Heard; !t.IsZero() {
		return t
	}
	return b.contact()
}

// writeGaps writes the gaps of a batch, each before the first change that is after its
// beginning, and returns the numbers of the changes.
func (s *Store[T]) writeGaps(w *logWrite, b batch[T]) (numbers []int64, err error) {
	numbers = make([]int64, len(b.changes))
	seq, since, left := w.next.seq, s.c.known().lastContact, b.gaps
	write := func(until time.Time) error {
		seq++
		g := changelog.Gap{Seq: changelog.Seq(seq), Gap: left[0], Since: since, Until: until}
		if g.Since.IsZero() || g.Since.After(g.Until) {
			g.Since = g.Until
		}
		left = left[1:]
		return w.gap(g)
	}
	for i := range b.changes {
		c, heard := b.changes[i], b.heard(i)
		for len(left) > 0 && (c.Missed || c.Rewound || left[0].From.OlderThan(c.Version)) {
			if err := write(heard); err != nil {
				return nil, err
			}
		}
		seq += 2
		numbers[i], since = seq, heard
	}
	for len(left) > 0 {
		if err := write(b.contact()); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// Some states are encoded before they are written, as all states of a batch without a history
// are. If encoding and SQLite took turns, each would evict the other from the processor's
// cache.
const (
	// encodedAhead is how many states that is, unless one key has more.
	encodedAhead = 64
	// encodedBytes bounds the memory that they take.
	encodedBytes = 1 << 20
)

// encodedState is a state that is to be written.
type encodedState struct {
	entry
	// raw are the bytes of the object; nil for a delete without an object, and if it could
	// not be encoded.
	raw    []byte
	uid    string
	failed error
	// room is the memory of raw, which is used again.
	room []byte
}

// encodeState encodes the object of a change, and packs it if it is the last of its key.
func (s *Store[T]) encodeState(to *encodedState, c tarn.Change[T], last bool) (err error) {
	*to = encodedState{entry: entry{key: c.Key, gone: c.Type == tarn.Delete}, room: to.room}
	if c.Missed && to.gone {
		return nil
	}
	s.buf = to.room
	to.failed = s.encodeObject(&to.entry, c.Object)
	if to.room = s.buf; to.failed != nil {
		return nil
	}
	if to.raw = s.buf; to.gone {
		return nil
	}
	if to.uid = s.uid(c.Object); last {
		err = s.packObject(&to.entry)
	}
	return err
}

// encodeAhead encodes the next states of a batch, all of a key. It returns how many.
func (s *Store[T]) encodeAhead(b batch[T], order []int) (n int, err error) {
	for bytes := 0; n < len(order); n++ {
		key := b.changes[order[n]].Key
		if n > 0 && key != b.changes[order[n-1]].Key && (n >= encodedAhead || bytes >= encodedBytes) {
			break
		}
		if n == len(s.ahead) {
			s.ahead = append(s.ahead, encodedState{})
		}
		last := n == len(order)-1 || b.changes[order[n+1]].Key != key
		if err := s.encodeState(&s.ahead[n], b.changes[order[n]], last); err != nil {
			return n, err
		}
		bytes += len(s.ahead[n].raw)
	}
	return n, nil
}

// forgetAhead lets go of the objects, and of memory that only large ones need.
func (s *Store[T]) forgetAhead() {
	n := min(len(s.ahead), encodedAhead)
	clear(s.ahead[n:])
	s.ahead = s.ahead[:n]
	for i, state := range s.ahead {
		if s.ahead[i] = (encodedState{room: state.room}); cap(state.room) > 2*encodedBytes/encodedAhead {
			s.ahead[i].room = nil
		}
	}
}

// writeKeys writes the changes of some keys.
func (s *Store[T]) writeKeys(w *logWrite, b batch[T], order []int, numbers []int64, next *state) (bad tarn.ObjectErrors, err error) {
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && b.changes[order[to]].Key == b.changes[order[from]].Key {
			to++
		}
		failed, err := s.writeKey(w, b, order[from:to], s.ahead[from:to], numbers, next)
		if err != nil {
			return nil, err
		}
		bad, from = append(bad, failed...), to
	}
	return bad, nil
}

// writeKey writes the changes of one key.
func (s *Store[T]) writeKey(w *logWrite, b batch[T], order []int, states []encodedState, numbers []int64, next *state) (bad tarn.ObjectErrors, err error) {
	key := b.changes[order[0]].Key
	if err := w.open(key); err != nil {
		return nil, err
	}
	e := entry{key: key}
	for n, i := range order {
		c, state := b.changes[i], &states[n]
		about := stateOf{uid: state.uid, version: c.Version, heard: b.heard(i)}
		e = state.entry
		delete(s.unwritten, key)
		switch {
		case e.gone:
			err = w.end(numbers[i], about, state.raw, &e.row)
		case state.failed == nil:
			err = w.put(numbers[i], about, state.raw, &e.row)
		default:
			e = entry{key: key, gone: true}
			s.unwritten[tarn.Key(strings.Clone(string(key)))] = struct{}{}
			bad = append(bad, tarn.BadObject{Key: key, Version: c.Version, Err: fmt.Errorf("cannot be written to disk: %w", state.failed)})
			gap := changelog.Gap{Seq: changelog.Seq(numbers[i] - 1), Gap: tarn.Gap{From: s.c.state.version, To: c.Version, Cause: changelog.GapUnwritten}, Since: about.heard, Until: about.heard}
			err = inTurn(w.gap(gap), func() error { return w.end(numbers[i], about, nil, nil) })
		}
		if err != nil {
			return nil, err
		}
	}
	w.close()
	return bad, w.writeContent(e, next)
}

// removeOthers removes the objects that a whole state does not have.
func (s *Store[T]) removeOthers(w *logWrite, b batch[T], next *state) error {
	var others []tarn.Key
	// The content may have been dropped, and the log kept.
	living := fmt.Sprintf("SELECT key FROM %s UNION SELECT key FROM %s WHERE last=%d ORDER BY key", s.c.objectsTable(), livesTable(s.c.id), alive)
	err := query(w.conn, living, func(row *sqlite3.Stmt) error {
		if key := tarn.Key(row.ColumnText(0)); !contains(b.whole, key) {
			others = append(others, key)
		}
		return nil
	})
	for _, key := range others {
		if err == nil {
			err = w.open(key)
		}
		if err == nil && w.first > w.logbook.state.shown && w.life != 0 {
			err = w.forget()
		} else if err == nil {
			err = w.end(w.next.seq+1, stateOf{heard: b.contact()}, nil, nil)
		}
		if err == nil {
			w.close()
			err = s.c.writeEntry(w.conn, entry{key: key, gone: true}, next)
		}
	}
	return err
}

func contains(keys map[tarn.Key]struct{}, key tarn.Key) bool {
	_, ok := keys[key]
	return ok
}

// forget removes a life that no reader has seen: it belongs to a first state that was given
// up.
func (w *logWrite) forget() error {
	if err := w.uncount("life=?", w.life); err != nil {
		return err
	}
	id := w.c.id
	for _, table := range []string{statesTable(id), basesTable(id)} {
		if err := execute(w.conn, "DELETE FROM "+table+" WHERE life=?", w.life); err != nil {
			return err
		}
	}
	w.next.lives--
	err := execute(w.conn, "DELETE FROM "+livesTable(id)+" WHERE id=?", w.life)
	w.life = 0
	return err
}

// uncount subtracts states that will be removed from the sums.
func (w *logWrite) uncount(where string, args ...any) error {
	return query(w.conn, "SELECT sum FROM "+statesTable(w.c.id)+" WHERE "+where, func(row *sqlite3.Stmt) error {
		w.uncounted(row)
		return nil
	}, args...)
}

// uncounted subtracts the state whose checksum is in a row from the sums.
func (w *logWrite) uncounted(row *sqlite3.Stmt) {
	w.next.states--
	w.next.sum -= sumOf(row.ColumnRawBlob(0)).number()
}
