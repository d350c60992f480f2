package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"github.com/tarnproject/tarn"
)

// loaded is the content of the file on opening.
type loaded[T any] struct {
	state
	items []tarn.Change[T]
}

// rows holds some rows as read, back to back. Its memory is reused once they are decoded:
// all rows together take more memory than the objects.
type rows struct {
	keys  []tarn.Key
	sums  []Sum
	ends  []int
	bytes []byte
	// bundled says that bytes is the bundle of this span, instead of rows.
	bundled bool
	span    int64
}

// loadRows is how many rows a worker decodes at a time.
const loadRows = 128

// add takes a row of key, sum and body.
func (r *rows) add(row *sqlite3.Stmt) {
	r.keys = append(r.keys, tarn.Key(row.ColumnText(0)))
	r.sums = append(r.sums, sumOf(row.ColumnRawBlob(1)))
	r.bytes = append(r.bytes, row.ColumnRawBlob(2)...)
	r.ends = append(r.ends, len(r.bytes))
}

func (r *rows) reset() {
	r.keys, r.sums, r.ends, r.bytes, r.bundled = r.keys[:0], r.sums[:0], r.ends[:0], r.bytes[:0], false
}

// load reads the whole collection: one goroutine reads the file, the others decode. If the
// bundles are damaged or do not fit the rows, it reads all rows. If the rows are damaged, it
// replaces the file by an empty one.
func (s *Store[T]) load(ctx context.Context) (loaded[T], error) {
	all, _, err := s.tryLoad(ctx, true)
	if damaged(err) {
		cause := err
		if all, _, err = s.tryLoad(ctx, false); err == nil {
			s.c.db.logEvent(slog.LevelWarn, "the bundles on disk cannot be used and are removed", "collection", s.c.Name, "cause", cause, "err", s.dropBundles())
		}
	}
	if err == nil || !damaged(err) {
		return all, err
	}
	return loaded[T]{}, s.rebuild(err)
}

// rebuild replaces a damaged file by an empty one.
func (s *Store[T]) rebuild(cause error) error {
	db := s.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.usable(); err != nil {
		return err
	}
	s.c.note = "it was damaged: " + cause.Error()
	if err := db.rescue(cause); err != nil {
		return err
	}
	s.c.publishState()
	s.epoch = db.epoch
	return nil
}

// tally counts the objects that a load finds.
type tally struct {
	objects int64
	// sum adds up their checksums, rows their keys and ids.
	sum  uint64
	rows entries
}

func (c *tally) add(key []byte, id int64, sum Sum) {
	c.objects++
	c.sum += sum.number()
	c.rows.add(key, id)
}

func (c *tally) merge(other tally) {
	c.objects += other.objects
	c.sum += other.sum
	c.rows.merge(other.rows)
}

// loadWorker decodes for a load, in memory that it reuses.
type loadWorker[T any] struct {
	store *Store[T]
	// buf is the memory for an object.
	buf       []byte
	unbundler unbundler
	// tally counts the objects of its bundles.
	tally tally
}

func (s *Store[T]) tryLoad(ctx context.Context, bundled bool) (all loaded[T], bundles int, err error) {
	n := runtime.GOMAXPROCS(0) // all of them: reading needs little
	work, done := make(chan *rows, n), make(chan decoded[T])
	// Each worker has one buffer, some buffers wait for a worker, and one is being read.
	spare := make(chan *rows, 2*n+1)
	for range cap(spare) {
		spare <- &rows{}
	}
	// The results of each worker, and of one whose results are being collected, are reused.
	room := make(chan []tarn.Change[T], n+1)
	for range cap(room) {
		room <- make([]tarn.Change[T], 0, loadRows)
	}
	read := loadReader[T]{store: s, work: work, spare: spare, bundled: bundled, found: tally{rows: newEntries()}}
	workers := make([]loadWorker[T], n)
	var working sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		*w = loadWorker[T]{store: s, buf: make([]byte, 0, 64<<10), tally: tally{rows: read.found.rows}}
		working.Go(func() {
			for r := range work {
				d := w.decode(r, <-room)
				r.reset()
				spare <- r
				done <- d
			}
		})
	}
	collected := make(chan error)
	go func() {
		var first error
		for d := range done {
			if all.items == nil {
				all.items = make([]tarn.Change[T], 0, min(max(all.objects, 0), 1<<16)) // the number in the file may be wrong
			}
			all.items = append(all.items, d.items...)
			clear(d.items)
			room <- d.items[:0]
			if first == nil {
				first = d.err
			}
		}
		collected <- first
	}()
	err = s.c.db.pool.with(func(r *reader) error { return read.all(ctx, r, &all.state) })
	close(work)
	working.Wait()
	close(done)
	if decoding := <-collected; err == nil {
		err = decoding
	}
	for _, w := range workers {
		read.found.merge(w.tally)
	}
	if err == nil {
		err = read.check(all.state)
	}
	return all, read.bundles, err
}

// decode decodes rows, or a bundle. items has room for the results.
func (w *loadWorker[T]) decode(r *rows, items []tarn.Change[T]) (d decoded[T]) {
	if !r.bundled {
		return w.store.decodeRows(r, w.buf, items)
	}
	d.items = items
	plain, err := w.store.c.packer.unpackBundle(&w.unbundler, r.span, r.bytes)
	if err == nil {
		err = readBundle(r.span, plain, func(o bundled) error {
			w.tally.add(textBytes(o.key), o.id, o.sum)
			object, err := w.store.decodePlain(o.plain)
			if err != nil {
				return fmt.Errorf("%s: %w", o.key, err)
			}
			d.items = append(d.items, tarn.Change[T]{Type: tarn.Add, Key: tarn.Key(o.key), Object: object})
			return nil
		})
	}
	d.err = err
	return d
}

// decoded is the result of decoding some rows.
type decoded[T any] struct {
	items []tarn.Change[T]
	err   error
}

// decodeRows decodes rows. buf is the memory for unpacking, items that for the results.
func (s *Store[T]) decodeRows(r *rows, buf []byte, items []tarn.Change[T]) (d decoded[T]) {
	d.items = items
	from := 0
	for i, key := range r.keys {
		object, err := s.decode(key, r.sums[i], r.bytes[from:r.ends[i]], buf)
		if err != nil {
			d.err = fmt.Errorf("%s: %w", key, err)
			return d
		}
		from = r.ends[i]
		d.items = append(d.items, tarn.Change[T]{Type: tarn.Add, Key: key, Object: object})
	}
	return d
}

// kept describes the content for the engine.
func (s *Store[T]) kept(st state) (tarn.Kept, error) {
	if !st.whole || st.version == "" {
		return tarn.Kept{}, nil
	}
	positions, err := decodePositions(st.positions)
	return tarn.Kept{Positions: positions, LastContact: st.lastContact}, err
}

// Restore describes the content of the file; see [tarn.Durable]. It drops a state that is
// not whole, since the source never had it.
func (s *Store[T]) Restore(ctx context.Context) (tarn.Kept, error) {
	st := s.shown()
	err := s.c.db.pool.with(s.c.checkTable)
	if damaged(err) {
		return tarn.Kept{}, s.rebuild(err)
	}
	kept, keptErr := s.kept(st)
	if keptErr == nil && (len(kept.Positions) > 0 || st.objects == 0) {
		for _, p := range kept.Positions {
			s.positions.Move(p)
		}
		return kept, errors.Join(err, ctx.Err())
	}
	s.c.db.logEvent(slog.LevelWarn, "the content on disk is incomplete and is dropped", "collection", s.c.Name)
	return tarn.Kept{}, s.Replace(nil, tarn.Position{})
}

// Disk returns the state of the file; see [tarn.DiskReporter].
func (s *Store[T]) Disk() tarn.SinkHealth {
	return *s.c.health.Load()
}
