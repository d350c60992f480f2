package sqlite

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// maxStatements is how many statements run at a time: more would only share the
	// same processors.
	maxStatements = 4
	// budgetBytes is what all of them may hold together: 128 MiB each for SQLite, and
	// 256 MiB for results in memory.
	budgetBytes = 768 << 20
)

// statements is the budget of this process.
var statements = newBudget(maxStatements, budgetBytes)

// budget bounds the memory of all running statements. A statement reserves its maximum
// before it starts, and waits for its turn, in order.
//
// Why reserve and not count: a statement that runs out of budget midway could only fail,
// and chance would decide which one.
type budget struct{ turns, bytes *semaphore.Weighted }

func newBudget(turns int, bytes int64) *budget {
	return &budget{semaphore.NewWeighted(int64(turns)), semaphore.NewWeighted(bytes)}
}

// enter waits for a turn, until ctx ends. The returned function ends the turn.
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

// acquire succeeds without a wait even if ctx has ended: the statement itself then
// returns the right error.
func acquire(ctx context.Context, s *semaphore.Weighted, n int64) error {
	if s.TryAcquire(n) {
		return nil
	}
	return s.Acquire(ctx, n)
}
