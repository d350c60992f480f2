package sqlite

import (
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/adapter"
	"github.com/tarnproject/tarn/memory"
)

// followed is a copy in memory that a sink follows, as in a replica.
type followed[T any] struct{ *tarn.SinkAdapter[T] }

func follow[T any](t testing.TB, store *Store[T]) *followed[T] {
	f := &followed[T]{tarn.AdaptSink(adapter.Key{}, tarn.ReadStore[T](memory.New[T]()), tarn.Sink[T](&Sink[T]{store: store}), tarn.Options[T]{Logger: quiet})}
	t.Cleanup(f.Close)
	return f
}

func (f *followed[T]) Disk() tarn.SinkHealth { return f.Health() }

// Release ends the copy.
func (f *followed[T]) Release() { f.Close() }

// Replace brings the copy to exactly these items.
func (f *followed[T]) Replace(items []tarn.Item[T], at tarn.Position) error {
	listed := map[tarn.Key]bool{}
	var changes []tarn.Change[T]
	for _, item := range items {
		listed[item.Key] = true
		changes = append(changes, tarn.Change[T]{Type: tarn.Update, Key: item.Key, Object: item.Object, Version: item.Version})
	}
	for key := range f.All() {
		if !listed[key] {
			changes = append(changes, tarn.Change[T]{Type: tarn.Delete, Key: key})
		}
	}
	return f.Apply(changes, at)
}
