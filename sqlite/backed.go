package sqlite

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarnproject/tarn"
)

// Backed is a store in front, which reads and writes are about, with one on disk
// behind it that follows.
//
// What the disk has not got yet is kept by key: an object that changes a hundred
// times while a group is collected, or while the disk is full for an hour, is
// written once and costs one entry. So the disk is never in the way, what waits
// for it is bounded by the number of objects, and when it can be written again it
// has nothing to catch up with but the latest state.
//
// Why not write first, as a database does with its log: what a crash loses here
// is told again by the source, from the version that the disk has.
type Backed[T any] struct {
	tarn.ReadStore[T]
	disk *Store[T]

	// flushing is held while something is written to disk.
	flushing sync.Mutex
	// writing is held while the front is written and what it took is noted, so that
	// both can be seen as they belong together.
	writing sync.Mutex

	mu      sync.Mutex
	waiting waiting[T]
	// positions are those of the front.
	positions tarn.Positions
	// failure is what keeps the disk from following.
	failure  error
	since    time.Time
	failures int64
	closed   bool

	// wake has a token when something waits, full when that is much.
	wake, full chan struct{}
	stop, done chan struct{}
	started    bool
}

// waiting is what the disk has not got.
type waiting[T any] struct {
	changes map[tarn.Key]tarn.Change[T]
	// all says that the disk must be brought to these alone.
	all       bool
	positions tarn.Positions
	// heard is when the source last said something, oldest when the first of these
	// was noted.
	heard, oldest time.Time
	any           bool
}

// Behind puts disk behind front. Nobody else may write either of them. The
// directory's Close writes what waits and ends it.
func Behind[T any](front tarn.ReadStore[T], disk *Store[T]) *Backed[T] {
	b := &Backed[T]{
		ReadStore: front, disk: disk,
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	db := disk.c.db
	db.mu.Lock()
	defer db.mu.Unlock()
	db.behind = append(db.behind, b)
	return b
}

// Unwrap returns the store in front; see [tarn.StoreWrapper].
func (b *Backed[T]) Unwrap() tarn.ReadStore[T] { return b.ReadStore }

// Replace brings the front to exactly these items; the disk follows.
func (b *Backed[T]) Replace(items []tarn.Item[T], at tarn.Position) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	err := b.ReadStore.Replace(items, at)
	if !tarn.Taken(err) {
		return err
	}
	b.mu.Lock()
	b.positions.Reset(at)
	b.mu.Unlock()
	b.noteAll()
	return err
}

// Apply brings the front on by some changes; the disk follows.
func (b *Backed[T]) Apply(changes []tarn.Change[T], at tarn.Position) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	err := b.ReadStore.Apply(changes, at)
	if !tarn.Taken(err) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		b.waiting.put(c)
	}
	b.positions.Move(at)
	b.noted()
	return err
}

func (w *waiting[T]) put(c tarn.Change[T]) {
	if w.changes == nil {
		w.changes = map[tarn.Key]tarn.Change[T]{}
	}
	var none T
	c.Old = none // not to be held any longer
	if c.Type == tarn.Delete {
		c.Object = none
	}
	w.changes[c.Key] = c
}

// noteAll notes everything that the front has. writing is held.
func (b *Backed[T]) noteAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.changes, b.waiting.all = nil, true
	for key, object := range b.ReadStore.All() {
		b.waiting.put(tarn.Change[T]{Type: tarn.Add, Key: key, Object: object})
	}
	b.noted()
}

// noted wakes the writer.
func (b *Backed[T]) noted() {
	now := time.Now()
	b.waiting.positions, b.waiting.heard = b.positions.Clone(), now
	if !b.waiting.any {
		b.waiting.any, b.waiting.oldest = true, now
	}
	if b.closed {
		return
	}
	if !b.started {
		b.started = true
		go b.run()
	}
	signal(b.wake)
	if len(b.waiting.changes) >= b.disk.c.db.opts.GroupSize {
		signal(b.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes groups until it is stopped. A disk that fails is tried again, ever
// less often.
func (b *Backed[T]) run() {
	defer close(b.done)
	const longest = 30 * time.Second
	retry := time.Second
	for {
		select {
		case <-b.wake:
		case <-b.stop:
			return
		}
		if !b.pause(b.disk.c.db.opts.GroupDelay, b.full) {
			return
		}
		for b.flush() != nil {
			if !b.pause(retry, nil) {
				return
			}
			retry = min(2*retry, longest)
		}
		retry = time.Second
	}
}

// pause waits for a time, or for early, and says whether to go on.
func (b *Backed[T]) pause(d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-early:
	case <-b.stop:
		return false
	}
	return true
}

// flush writes what waits.
func (b *Backed[T]) flush() error {
	b.flushing.Lock()
	defer b.flushing.Unlock()
	w := b.take()
	if !w.any {
		return nil
	}
	err := b.writeOut(w)
	if errors.Is(err, errRebuilt) {
		// The new file is empty: it gets everything.
		b.writing.Lock()
		b.noteAll()
		b.writing.Unlock()
		w = b.take()
		err = b.writeOut(w)
	}
	if err != nil {
		b.putBack(w)
	}
	b.failed(err)
	return err
}

func (b *Backed[T]) take() waiting[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiting
	if w.any { // else all of it is about what is still to come
		b.waiting = waiting[T]{}
	}
	return w
}

// largeState is how many changes are too many for one transaction where nothing is
// lost by several.
const largeState = 5_000

// writeOut writes a group in one transaction. The first state of a large
// collection is written in several, because until its end there is nothing that a
// crash could lose, and the log stays small.
func (b *Backed[T]) writeOut(w waiting[T]) error {
	changes := make([]tarn.Change[T], 0, len(w.changes))
	for _, c := range w.changes {
		changes = append(changes, c)
	}
	// Siblings are to lie next to each other: who loads them finds most of each in the
	// one before, and pages of indexes are filled one after the other.
	slices.SortFunc(changes, func(a, b tarn.Change[T]) int { return strings.Compare(string(a.Key), string(b.Key)) })
	all := w.all
	if empty := b.disk.c.snapshot().objects == 0; empty || all && len(changes) > largeState {
		for len(changes) > largeState {
			err := b.disk.write(batch[T]{changes: changes[:largeState], all: all, part: true, heard: w.heard})
			if !tarn.Taken(err) {
				return err
			}
			changes, all = changes[largeState:], false
		}
	}
	err := b.disk.write(batch[T]{changes: changes, all: all, positions: w.positions, heard: w.heard})
	if tarn.Taken(err) {
		if err != nil {
			b.disk.c.db.tell(slog.LevelWarn, "objects could not be written to disk: the next start lists", "collection", b.disk.c.Name, "err", err)
		}
		return nil
	}
	return err
}

func (c *collection) snapshot() state {
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	return c.state
}

// putBack lets what could not be written wait again, except for what has changed
// since.
func (b *Backed[T]) putBack(w waiting[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting.all {
		return
	}
	for key, c := range b.waiting.changes {
		if w.changes == nil {
			w.changes = map[tarn.Key]tarn.Change[T]{}
		}
		w.changes[key] = c
	}
	if b.waiting.any {
		w.positions, w.heard = b.waiting.positions, b.waiting.heard
	}
	b.waiting = w
}

// failed notes how the last write went.
func (b *Backed[T]) failed(err error) {
	b.mu.Lock()
	before := b.failure
	b.failure = err
	if err != nil {
		b.failures++
	}
	if before == nil && err != nil {
		b.since = time.Now()
	}
	b.mu.Unlock()
	db := b.disk.c.db
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		db.tell(slog.LevelError, "the disk cannot be written: the replica goes on in memory, and tries again", "collection", b.disk.c.Name, "err", err)
	case err == nil && before != nil:
		db.tell(slog.LevelInfo, "the disk is written again", "collection", b.disk.c.Name)
	}
}
