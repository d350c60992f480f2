package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"

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

// merge adds entries of the same seed.
func (e *entries) merge(others entries) {
	e.count += others.count
	e.sum += others.sum
}

// An indexWalk checks that the index finds objects by their keys: an object that it does
// not find would be written a second time, and never deleted.
//
// The index is a tree of entries in order. It finds each of them if a walk meets them in
// ascending order, and it is right if they are those of the table. Then no key is there
// twice either.
//
// The walk and the read of the table take turns in one transaction, loadRows at a time. The
// read waits for the goroutines that decode, so the walk uses time that is free. A walk after
// the read would let the decoders wait.
//
// Why not integrity_check, as [collection.checkTable]: it reads the whole table a second
// time, which took an eighth of the time to load a collection, and the checksums of the
// rows prove what it finds there. An entry that leads to no row, because the tree of the
// table is damaged above its rows, is an error of the statement that follows it.
type indexWalk struct {
	found entries
	next  func() (error, bool)
	stop  func()
}

// walkIndex begins a walk, which has to be stopped.
func (c *collection) walkIndex(r *reader, seed maphash.Seed) *indexWalk {
	w := &indexWalk{found: entries{seed: seed}}
	table, last := c.objectsTable(), []byte(nil)
	w.next, w.stop = iter.Pull(func(yield func(error) bool) {
		err := r.query("SELECT key, id FROM "+table+" INDEXED BY sqlite_autoindex_"+table+"_1 ORDER BY key", func(row *sqlite3.Stmt) error {
			text := row.ColumnType(0) == sqlite3.TEXT // reading the text converts the column
			key := row.ColumnRawText(0)
			if !text || w.found.count > 0 && bytes.Compare(last, key) >= 0 {
				return fmt.Errorf("%w: the index is not in order after %q", errBadRow, last)
			}
			w.found.add(key, row.ColumnInt64(1))
			last = append(last[:0], key...)
			if w.found.count%loadRows == 0 && !yield(nil) {
				return errWalkEnded
			}
			return nil
		})
		if err != nil && !errors.Is(err, errWalkEnded) {
			yield(err)
		}
	})
	return w
}

// errWalkEnded ends the statement of a walk that nobody continues.
var errWalkEnded = errors.New("the walk has ended")

// finish walks to the end of the index.
func (w *indexWalk) finish() error {
	for {
		if err, more := w.next(); err != nil || !more {
			return err
		}
	}
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
