package sqlite

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// maxStatements is how many statements are computed at a time: more would only
	// share the same processors.
	maxStatements = 4
	// budgetBytes is what all of them may hold together: 128 MiB each for SQLite, and
	// 256 MiB for answers that are gathered.
	budgetBytes = 768 << 20
)

// statements is the budget of this process.
var statements = newBudget(maxStatements, budgetBytes)

// budget bounds what all running statements cost together. A statement reserves what
// it may use at most before it starts, and waits for its turn, in order.
//
// Why reserve and not count what is used: a statement that finds nothing left in the
// middle could only fail, and which one that is would be chance.
type budget struct{ turns, bytes *semaphore.Weighted }

func newBudget(turns int, bytes int64) *budget {
	return &budget{semaphore.NewWeighted(int64(turns)), semaphore.NewWeighted(bytes)}
}

// enter waits for a turn, until ctx ends. The function that it returns gives the turn
// back.
func (b *budget) enter(ctx context.Context, bytes int64) (leave func(), err error) {
	if err := acquire(ctx, b.turns, 1); err != nil {
		return nil, err
	}
	if err := acquire(ctx, b.bytes, bytes); err != nil {
		b.turns.Release(1)
		return nil, err
	}
	return func() {
		b.bytes.Release(bytes)
		b.turns.Release(1)
	}, nil
}

// acquire takes what is free even if ctx has ended: why the statement is then stopped
// is told by what stops it.
func acquire(ctx context.Context, s *semaphore.Weighted, n int64) error {
	if s.TryAcquire(n) {
		return nil
	}
	return s.Acquire(ctx, n)
}
