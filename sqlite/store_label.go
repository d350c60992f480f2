package sqlite

import (
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// Label is what [Store.SetLabel] last wrote, empty if that was for another identity.
func (s *Store[T]) Label() (label string) {
	s.failed(s.c.db.pool.with(func(r *reader) error {
		return r.query("SELECT "+collectionColumns+" FROM tarn_collections WHERE name=?", func(row *sqlite3.Stmt) error {
			found, err := scanCollection(row, s.c.db.keys)
			label = found.label
			return err
		}, s.c.Name)
	}))
	return label
}

// SetLabel stores a text of the caller with the content, such as the server that it came
// from. With distrust, the content is of another source: a start does not use it until the
// next write, and then only the sections that were written in another epoch since. sections
// are those that are of another source; all, if none is named.
func (s *Store[T]) SetLabel(label string, distrust bool, sections ...string) error {
	db := s.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return err
	}
	next, distrusted := s.c.state, maps.Clone(s.c.distrusted)
	if distrust {
		next.whole = false
		positions, err := decodePositions(next.positions)
		if err != nil {
			return err
		}
		for _, p := range positions {
			if len(sections) > 0 && !slices.Contains(sections, p.Section) {
				continue
			}
			if distrusted == nil {
				distrusted = map[string]string{}
			}
			distrusted[p.Section] = p.Epoch
		}
	}
	err := db.transact(func(conn *sqlite3.Conn) error { return s.c.writeRow(conn, "REPLACE INTO", next, label) })
	if err == nil {
		s.c.state, s.c.label, s.c.distrusted = next, label, distrusted
	}
	return db.explain("write "+s.c.Name+" to", err)
}

// trusted leaves out the positions of sections whose content is of another source. A process
// that ends before it has read such a section again must not leave a position from which the
// next one resumes.
func (c *collection) trusted(at tarn.Positions) tarn.Positions {
	if len(c.distrusted) == 0 {
		return at
	}
	all := at.All()
	at = at.Clone()
	for _, p := range all {
		if epoch, ok := c.distrusted[p.Section]; ok && epoch == p.Epoch {
			at.Move(tarn.Position{Section: p.Section})
		}
	}
	return at
}

// trustMoved trusts the sections that are at another epoch, or gone, after a write.
func (c *collection) trustMoved(at tarn.Positions) {
	maps.DeleteFunc(c.distrusted, func(section, epoch string) bool {
		return !slices.ContainsFunc(at.All(), func(p tarn.Position) bool { return p.Section == section && p.Epoch == epoch })
	})
}

// encodeTrusted returns the positions that a write would store.
func (c *collection) encodeTrusted(at tarn.Positions) string {
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	at = c.trusted(at)
	return encodePositions(at.All())
}
