package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tarnproject/tarn"
)

// Restore loads what the disk has into the front; see [tarn.Durable]. What the front
// does not begin with must go from the disk when the next state comes: parts of one,
// and what could not be loaded.
func (b *Backed[T]) Restore(ctx context.Context) (tarn.Kept, error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	all, err := b.disk.load(ctx)
	if err != nil {
		b.replaceAll()
		return tarn.Kept{}, fmt.Errorf("nothing could be loaded from disk: %w", err)
	}
	kept, err := b.disk.kept(all.state)
	if err != nil {
		b.replaceAll()
		return tarn.Kept{}, fmt.Errorf("nothing could be loaded from disk: %w", err)
	}
	if len(kept.Positions) == 0 {
		if len(all.items) > 0 {
			b.replaceAll()
		}
		return kept, nil
	}
	if err = fill(b.ReadStore, all.items, kept.Positions); !tarn.Taken(err) {
		b.replaceAll()
		return tarn.Kept{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range kept.Positions {
		b.positions.Move(p)
	}
	return kept, err
}

// fill brings an empty store to what was loaded.
func fill[T any](store tarn.ReadStore[T], items []tarn.Change[T], positions []tarn.Position) error {
	err := store.Apply(items, positions[0])
	for _, p := range positions[1:] {
		if !tarn.Taken(err) {
			break
		}
		err = errors.Join(err, store.Apply(nil, p))
	}
	return err
}

// replaceAll lets the next state be all that the disk has.
func (b *Backed[T]) replaceAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.all = true
}

// Disk tells how far the disk has followed; see [tarn.Durable].
func (b *Backed[T]) Disk() tarn.DiskHealth {
	h := b.disk.Disk()
	b.mu.Lock()
	defer b.mu.Unlock()
	h.Pending, h.Err, h.ErrSince, h.Failures = len(b.waiting.changes), b.failure, b.since, b.failures
	if b.failure == nil {
		h.ErrSince = time.Time{}
	}
	if b.waiting.any {
		h.Lag = time.Since(b.waiting.oldest)
	}
	return h
}

// Release writes what waits, and lets another store have the collection; see
// [tarn.Releaser]. The front can be read on.
func (b *Backed[T]) Release() {
	if b.disk.c.db.forget(b) {
		if err := b.close(); err != nil {
			b.disk.c.db.tell(slog.LevelError, "what was last known could not be written to disk: the next start begins with an older state", "collection", b.disk.c.Name, "err", err)
		}
	}
	b.disk.Release()
}

// close writes what waits, and stops.
func (b *Backed[T]) close() error {
	b.mu.Lock()
	b.closed = true
	started := b.started
	b.mu.Unlock()
	close(b.stop)
	if started {
		<-b.done
	}
	return b.flush()
}
