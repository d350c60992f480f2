package sqlite

import (
	"bytes"
	"fmt"
	"hash/maphash"

	"github.com/ncruces/go-sqlite3"
)

// entries are pairs of key and id, in any order. Two of the same seed that had different
// pairs added are different, but for a chance of one in 2^64.
type entries struct {
	seed  maphash.Seed
	count int64
	sum   uint64
}

func newEntries() entries { return entries{seed: maphash.MakeSeed()} }

func (e *entries) add(key []byte, id int64) {
	var h maphash.Hash
	h.SetSeed(e.seed)
	maphash.WriteComparable(&h, id)
	h.Write(key)
	e.count++
	e.sum += h.Sum64()
}

// indexHas checks that the index finds objects by their keys: an object that it does not
// find would be written a second time, and never deleted. rows are the entries of the
// table, which was read in the same transaction.
//
// The index is a tree of entries in order. It finds each of them if a walk meets them in
// ascending order, and it is right if they are those of the table. Then no key is there
// twice either.
//
// Why not integrity_check, as [collection.checkTable]: it reads the whole table a second
// time, which took an eighth of the time to load a collection, and the checksums of the
// rows prove what it finds there. An entry that leads to no row, because the tree of the
// table is damaged above its rows, is an error of the statement that follows it.
func (c *collection) indexHas(r *reader, rows entries) error {
	table := c.objectsTable()
	found, last := entries{seed: rows.seed}, []byte(nil)
	err := r.query("SELECT key, id FROM "+table+" INDEXED BY sqlite_autoindex_"+table+"_1 ORDER BY key", func(row *sqlite3.Stmt) error {
		text := row.ColumnType(0) == sqlite3.TEXT // reading the text converts the column
		key := row.ColumnRawText(0)
		if !text || found.count > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("%w: the index is not in order after %q", errBadRow, last)
		}
		found.add(key, row.ColumnInt64(1))
		last = append(last[:0], key...)
		return nil
	})
	if err == nil && found != rows {
		err = fmt.Errorf("%w: the index has other objects than the table: %d, and %d are there", errBadRow, found.count, rows.count)
	}
	return err
}

// checkTable checks the table and its index without their content. It takes 0.3 s for
// 100,000 objects.
func (c *collection) checkTable(r *reader) error {
	return r.query("PRAGMA integrity_check("+c.objectsTable()+")", func(row *sqlite3.Stmt) error {
		if found := row.ColumnText(0); found != "ok" {
			return fmt.Errorf("%w: %s", errBadRow, found)
		}
		return nil
	})
}
