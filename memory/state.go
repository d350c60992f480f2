package memory

import (
	"fmt"
	"sync/atomic"

	"github.com/tarnproject/tarn"
)

// state is all that readers see, at one moment. It is never changed.
type state[T any] struct {
	seq     uint64
	version tarn.Version
	writing *writeLock // of the store
	*books[T]
	// readers counts those who hold it, see pin.
	readers atomic.Int64
}

// books are the ordered parts of a state. They are one piece because most writes
// leave them as they are.
type books[T any] struct {
	cells   tree[*cell[T]]
	indexes []*shelf[T]
}

// shelf is an index as a state has it.
type shelf[T any] struct {
	*index[T]
	postings tree[posting[T]]
	// entries counts cells over all values.
	entries int
}

// shelf finds an index by name.
func (b *books[T]) shelf(name string) (*shelf[T], error) {
	for _, x := range b.indexes {
		if x.name == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name)
}
