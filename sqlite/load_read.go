package sqlite

import (
	"context"
	"fmt"
	"math"

	"github.com/ncruces/go-sqlite3"
)

// loadReader reads the file for a load, and hands rows and bundles to the workers.
type loadReader[T any] struct {
	store *Store[T]
	work  chan<- *rows
	spare <-chan *rows
	// bundled says that bundles are read if there are some; bundles counts them.
	bundled bool
	bundles int

	ctx    context.Context
	reader *reader
	index  *indexWalk
	// next has the rows that are not handed over yet; found counts all rows.
	next  *rows
	found tally
	// walked is the number of objects for which the index has been walked.
	walked int64
	// objects is their number in the collection's state; release ends the reserve of heap.
	objects int64
	release func()
}

// all reads the state and all objects in one snapshot: bundles, and the rows between them.
func (l *loadReader[T]) all(ctx context.Context, r *reader, st *state) (err error) {
	if err := r.conn.Exec("BEGIN"); err != nil {
		return err
	}
	defer func() { err = first(err, r.conn.Exec("COMMIT")) }()
	c := l.store.c
	if err := c.readState(r, st); err != nil {
		return err
	}
	l.ctx, l.reader, l.objects, l.next = ctx, r, st.objects, <-l.spare
	l.index = c.walkIndex(r, l.found.rows.seed)
	defer l.index.stop()
	defer func() {
		if l.release != nil {
			l.release()
		}
	}()
	from := int64(math.MinInt64)
	if l.bundled {
		err = r.query("SELECT span, body FROM tarn_bundles WHERE collection=? ORDER BY span", func(row *sqlite3.Stmt) error {
			span := row.ColumnInt64(0)
			if err := l.rows(from, firstOf(span)-1); err != nil {
				return err
			}
			from = firstOf(span + 1)
			return l.bundle(span, row.ColumnRawBlob(1))
		}, c.id)
	}
	if err == nil {
		err = l.rows(from, math.MaxInt64)
	}
	if err == nil {
		l.work <- l.next
		err = l.index.finish()
	}
	return err
}

// rows reads the rows of some ids.
func (l *loadReader[T]) rows(from, to int64) error {
	if from > to {
		return nil
	}
	return l.reader.query("SELECT key, sum, body, id FROM "+l.store.c.objectsTable()+" WHERE id BETWEEN ? AND ? ORDER BY id", func(row *sqlite3.Stmt) error {
		l.next.add(row)
		l.found.add(row.ColumnRawText(0), row.ColumnInt64(3), sumOf(row.ColumnRawBlob(1)))
		if len(l.next.keys) < loadRows {
			return l.ctx.Err()
		}
		l.reserve(loadRows, len(l.next.bytes))
		return l.handOver(loadRows)
	}, from, to)
}

// bundle hands a bundle to the workers.
func (l *loadReader[T]) bundle(span int64, stored []byte) error {
	if len(l.next.keys) > 0 {
		if err := l.handOver(int64(len(l.next.keys))); err != nil {
			return err
		}
	}
	l.bundles++
	l.next.bundled, l.next.span, l.next.bytes = true, span, append(l.next.bytes, stored...)
	l.reserve(1<<spanBits, len(stored)*rowsOfBundle)
	return l.handOver(1 << spanBits)
}

// rowsOfBundle is how many bytes of rows correspond to a byte of a bundle, for real pods.
const rowsOfBundle = 6

// reserve reserves heap once the first objects show how large all of them are.
func (l *loadReader[T]) reserve(objects int64, packed int) {
	if l.release == nil {
		l.release = loadReserve.hold(l.objects / objects * int64(packed))
	}
}

// handOver hands what was read to a worker, and walks as far in the index.
func (l *loadReader[T]) handOver(objects int64) error {
	l.work <- l.next
	l.next = <-l.spare
	for l.walked += objects; l.walked >= loadRows; l.walked -= loadRows {
		if err, _ := l.index.next(); err != nil {
			return err
		}
	}
	return l.ctx.Err()
}

// check compares what was found with the state of the collection, and with the index.
func (l *loadReader[T]) check(st state) error {
	switch {
	case l.found.objects != st.objects || l.found.sum != st.sum:
		return fmt.Errorf("%w: rows were lost, or are there twice: %d are there, and %d belong there", errBadRow, l.found.objects, st.objects)
	case l.index.found != l.found.rows:
		return fmt.Errorf("%w: the index has other objects than the table: %d, and %d are there", errBadRow, l.index.found.count, l.found.rows.count)
	}
	return nil
}
