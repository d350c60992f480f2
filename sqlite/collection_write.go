package sqlite

import (
	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// entry is what a transaction does to one key.
type entry struct {
	key  tarn.Key
	gone bool
	sum  Sum
	body []byte
	row  Row
	// found is a checksum of the indexed values, parts holds the sums of the wide
	// values.
	found int64
	parts []byte
}

// write makes the changes of one transaction.
func (c *collection) write(conn *sqlite3.Conn, entries []entry, all bool, next *state) error {
	if all {
		if err := c.clear(conn); err != nil {
			return err
		}
		next.objects, next.sum = 0, 0
	}
	for _, e := range entries {
		if err := c.writeEntry(conn, e, next); err != nil {
			return err
		}
	}
	return c.writeRow(conn, "REPLACE INTO", *next, c.label)
}

func (c *collection) clear(conn *sqlite3.Conn) error {
	tables := []string{c.objectsTable()}
	if c.table != nil {
		for _, name := range c.table.storing(c.id) {
			tables = append(tables, quote(name))
		}
	}
	for _, t := range tables {
		if err := conn.Exec("DELETE FROM " + t); err != nil {
			return err
		}
	}
	return c.unbundleAll(conn)
}

// storedRow is the row of an object in the content, as far as its next write needs it.
type storedRow struct {
	// id is 0 if the object has no row.
	id int64
	// sum is what the row adds to the sum of all rows.
	sum   uint64
	found int64
	parts []byte
	// changed says which parts of the row the write changes, if compared is true.
	changed  rowParts
	compared bool
}

// findRow reads the row of a key.
func (c *collection) findRow(key tarn.Key) (r storedRow, err error) {
	err = run(c.stmts.find, func(row *sqlite3.Stmt) error {
		r = storedRow{id: row.ColumnInt64(0), sum: sumOf(row.ColumnRawBlob(1)).number(), found: row.ColumnInt64(2), parts: row.ColumnBlob(3, nil)}
		return nil
	}, string(key))
	return r, err
}

// writeEntry writes or deletes one object, and updates the count. Why not an upsert: it
// returns neither whether the row existed nor its checksum.
func (c *collection) writeEntry(conn *sqlite3.Conn, e entry, next *state) error {
	before, err := c.findRow(e.key)
	if err == nil {
		_, err = c.writeOver(conn, before, e, next)
	}
	return err
}

// writeOver is like writeEntry, for a row that is already known. It returns the id of the row
// that exists afterwards.
func (c *collection) writeOver(conn *sqlite3.Conn, before storedRow, e entry, next *state) (id int64, err error) {
	id = before.id
	next.sum -= before.sum
	how := rowUpdated
	switch {
	case e.gone && id == 0:
		return 0, nil
	case e.gone:
		how = rowGone
		next.objects--
		err = run(c.stmts.remove, noRow, id)
	case id == 0:
		how = rowAdded
		next.objects++
		next.sum += e.sum.number()
		err = run(c.stmts.insert, noRow, string(e.key), e.sum, e.found, e.parts, e.body)
		id = conn.LastInsertRowID()
	default:
		if e.found == before.found {
			how = rowTouched
		}
		next.sum += e.sum.number()
		err = run(c.stmts.update, noRow, id, e.sum, e.found, e.parts, e.body)
	}
	if err == nil {
		err = c.unbundle(conn, id)
	}
	if err != nil || c.table == nil {
		return id, err
	}
	return id, c.stmts.table.write(conn, how, id, e, before)
}

func noRow(*sqlite3.Stmt) error { return nil }
