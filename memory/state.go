package memory

import (
	"fmt"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// state is everything that readers see at one moment. It never changes.
type state[T any] struct {
	seq     uint64
	version tarn.Version
	writing *writeLock // of the store
	*indexSet[T]
	// readers counts the readers that hold it, see pin.
	readers atomic.Int64
}

// indexSet holds the trees of a state. They are one value because most writes do
// not change them.
type indexSet[T any] struct {
	cells   tree[*cell[T]]
	indexes []*indexState[T]
}

// indexState is an index in one state.
type indexState[T any] struct {
	*index[T]
	postings tree[posting[T]]
	// entries counts cells over all values.
	entries int
}

// index finds an index by name.
func (b *indexSet[T]) index(name string) (*indexState[T], error) {
	for _, x := range b.indexes {
		if x.name == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name)
}
