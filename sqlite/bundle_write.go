package sqlite

import (
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

const (
	// bundleAfter is the time without a write after which a span gets a bundle. So a span
	// is bundled at most once in this time, however often it is written.
	bundleAfter = 10 * time.Minute
	// bundlesPerCommit is how many spans get a bundle after a commit, and bundlesPerTransaction
	// how many in each transaction after a whole state.
	bundlesPerCommit, bundlesPerTransaction = 32, 128
)

// bundles is what the writer knows about the bundles of a collection. The zero value knows
// nothing, and is filled from the file when it is needed. It is set to zero after a transaction
// that failed, because that may have deleted bundles. The DB's lock guards it.
type bundles struct {
	// made has the spans with a bundle.
	made map[int64]struct{}
	// unbundled has the other spans with rows, and the time of their last write or of the start.
	unbundled map[int64]time.Time
}

// unbundle is called with each row that is written: it deletes the bundle of its span.
func (c *collection) unbundle(conn *sqlite3.Conn, id int64) error {
	if err := c.findBundled(conn); err != nil {
		return err
	}
	span := spanOf(id)
	if c.bundles.unbundled != nil {
		c.bundles.unbundled[span] = time.Now()
	}
	if _, ok := c.bundles.made[span]; !ok {
		return nil
	}
	delete(c.bundles.made, span)
	return run(c.stmts.unbundle, noRow, c.id, span)
}

// unbundleAll is called when all rows are deleted.
func (c *collection) unbundleAll(conn *sqlite3.Conn) error {
	c.bundles = bundles{made: map[int64]struct{}{}, unbundled: map[int64]time.Time{}}
	return execute(conn, "DELETE FROM tarn_bundles WHERE collection=?", c.id)
}

func (c *collection) findBundled(conn *sqlite3.Conn) error {
	if c.bundles.made != nil {
		return nil
	}
	made := map[int64]struct{}{}
	err := query(conn, "SELECT span FROM tarn_bundles WHERE collection=?", func(row *sqlite3.Stmt) error {
		made[row.ColumnInt64(0)] = struct{}{}
		return nil
	}, c.id)
	if err == nil {
		c.bundles.made = made
	}
	return err
}

// findUnbundled finds the spans without a bundle by the index of the keys, which has the ids too.
func (c *collection) findUnbundled(conn *sqlite3.Conn) error {
	if err := c.findBundled(conn); err != nil || c.bundles.unbundled != nil {
		return err
	}
	unbundled, now := map[int64]time.Time{}, time.Now()
	err := query(conn, "SELECT id FROM "+c.objectsTable()+" INDEXED BY sqlite_autoindex_"+c.objectsTable()+"_1", func(row *sqlite3.Stmt) error {
		span := spanOf(row.ColumnInt64(0))
		if _, ok := c.bundles.made[span]; !ok {
			unbundled[span] = now
		}
		return nil
	})
	if err == nil {
		c.bundles.unbundled = unbundled
	}
	return err
}

// bundle makes bundles after a commit: of all spans after a whole state, else of some that
// were not written for a while. If it fails, the next start reads rows.
func (s *Store[T]) bundle(whole bool) {
	quiet, most := bundleAfter, bundlesPerCommit
	if whole {
		quiet, most = 0, bundlesPerTransaction
	}
	for {
		made, err := s.c.makeBundles(quiet, most)
		if err != nil {
			s.c.db.logEvent(slog.LevelWarn, "objects could not be bundled for the next start, which takes longer", "collection", s.c.Name, "err", err)
			if damaged(err) {
				s.suspicion.put(err)
			}
		}
		if err != nil || !whole || made == 0 {
			return
		}
	}
}

// makeBundles bundles spans that were not written for this time, and returns how many spans it
// has handled.
func (c *collection) makeBundles(quiet time.Duration, most int) (handled int, err error) {
	db := c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed || db.writer == nil || c.released || !c.state.whole {
		return 0, nil
	}
	defer func() {
		if err != nil {
			c.bundles = bundles{}
		}
	}()
	if err := withoutPanic(func() error { return c.findUnbundled(db.writer) }); err != nil {
		return 0, err
	}
	var spans []int64
	for span, at := range c.bundles.unbundled {
		if time.Since(at) >= quiet {
			spans = append(spans, span)
		}
	}
	if len(spans) == 0 {
		return 0, nil
	}
	// While a reader keeps the log from being emptied, its second half is for changes.
	if size, err := db.logSize(db.opts.LogLimit / 2); err != nil || size > db.opts.LogLimit/2 {
		return 0, err
	}
	slices.Sort(spans)
	spans = spans[:min(len(spans), most)]
	bundler, err := newBundler()
	if err != nil {
		return 0, err
	}
	var made []int64
	full := false
	err = db.transact(func(conn *sqlite3.Conn) error {
		left, err := db.leftForBundles(conn)
		if err != nil {
			return err
		}
		var b bundle
		var room []byte
		// With large objects, fewer spans go into a transaction: writers wait for it, and the log
		// grows.
		for bytes := int64(0); handled < len(spans) && bytes < db.opts.LogLimit/4; handled++ {
			span := spans[handled]
			b.reset()
			if err := c.collectBundle(conn, span, &b, &room); err != nil {
				return err
			}
			bytes += int64(len(b.plain))
			if b.count < fewestBundled || len(b.plain) > largestBundle {
				continue
			}
			stored, err := c.packer.packBundle(bundler, span, b.bytes())
			if err != nil {
				return err
			}
			if left -= int64(len(stored)); left < 0 {
				full = true
				break
			}
			if err := execute(conn, "INSERT INTO tarn_bundles (collection, span, body) VALUES (?, ?, ?)", c.id, span, stored); err != nil {
				return err
			}
			made = append(made, span)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, span := range spans[:handled] {
		delete(c.bundles.unbundled, span)
	}
	if full { // there may be room later
		for _, span := range spans[handled:] {
			c.bundles.unbundled[span] = time.Now()
		}
	}
	for _, span := range made {
		c.bundles.made[span] = struct{}{}
	}
	return handled, nil
}

// leftForBundles is how many bytes bundles may take. In a file that is at the bound of its
// history, bundles would displace states.
func (db *DB) leftForBundles(conn *sqlite3.Conn) (int64, error) {
	bound := int64(math.MaxInt64)
	for _, c := range db.collections {
		if l := c.log; l != nil && l.Bytes > 0 {
			bound = min(bound, l.Bytes)
		}
	}
	used, err := usedBytes(conn)
	return bound/100*tightPercent - used, err
}

// collectBundle reads the rows of a span, until they are too large.
func (c *collection) collectBundle(conn *sqlite3.Conn, span int64, b *bundle, room *[]byte) error {
	return query(conn, "SELECT id, key, sum, body FROM "+c.objectsTable()+" WHERE id >= ? AND id < ? ORDER BY id", func(row *sqlite3.Stmt) error {
		if len(b.plain) > largestBundle {
			return nil
		}
		o := bundled{id: row.ColumnInt64(0), key: row.ColumnText(1), sum: sumOf(row.ColumnRawBlob(2))}
		stored := row.ColumnRawBlob(3)
		if need := 16*len(stored) + largestLed; need > cap(*room) {
			*room = make([]byte, need)
		}
		plain, err := c.packer.unpack(tarn.Key(o.key), o.sum, stored, *room)
		if err == nil {
			o.plain = plain
			b.add(o)
		}
		return err
	}, firstOf(span), firstOf(span+1))
}

// dropBundles deletes all bundles. If damage prevents that, the next write replaces the file.
func (s *Store[T]) dropBundles() error {
	db := s.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return err
	}
	err := db.transact(s.c.unbundleAll)
	s.c.bundles = bundles{}
	if damaged(err) {
		s.suspicion.put(err)
	}
	return err
}
