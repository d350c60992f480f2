package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarnproject/tarn"
)

// A history that is bounded by age has a horizon, tarn_feeds.history_since. It holds every
// state after the horizon, and of each object that lived at the horizon the state that was
// valid there. So the state at any moment from the horizon on can be reconstructed, and an
// earlier one cannot.
//
// The horizon moves in steps. A step takes the states that were received between the horizon
// and the next one. For each of their objects it deletes everything before the last of these
// states, and that one too if it is a delete. Objects without a state in between keep the one
// that they have. The cost of a step therefore depends on the number of states that it passes,
// not on the number of objects. It deletes about as many rows as were added in as much time.

// pruneStep is how many states a step passes at least, if there are so many. retainEvery is
// how often the horizon moves when it has caught up.
const (
	pruneStep   = 1000
	retainEvery = time.Minute
)

// retains says that the horizon has to be moved.
func (s *Sink[T]) retains() bool {
	return s.db.opts.History && s.db.opts.HistoryAge > 0 && time.Since(s.retained) >= retainEvery
}

// retain moves the horizon by one step, in the transaction of a batch. A larger batch makes
// larger steps, so that a history does not grow faster than it is pruned. It is due again
// with the next batch until the horizon has caught up.
func (s *Sink[T]) retain(ctx context.Context, tx pgx.Tx, b tarn.Batch[T]) error {
	history := s.table.history().quoted()
	var since *time.Time
	var target time.Time
	if err := tx.QueryRow(ctx, `SELECT history_since, clock_timestamp() - $3::interval FROM tarn_feeds WHERE cluster = $1 AND resource = $2`,
		s.db.opts.Cluster, s.table.name, s.db.opts.HistoryAge).Scan(&since, &target); err != nil {
		return err
	}
	if since != nil && !since.Before(target) {
		s.retained = time.Now()
		return nil
	}
	horizon, caughtUp := target, true
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT heard FROM %s WHERE cluster = $1 AND heard > coalesce($2::timestamptz, '-infinity') AND heard <= $3
		ORDER BY heard OFFSET $4 LIMIT 1`, history), s.db.opts.Cluster, since, target, max(pruneStep, 2*len(b.Changes)))
	if err != nil {
		return err
	}
	next, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return err
	}
	if len(next) > 0 {
		horizon, caughtUp = next[0], false
	}
	// The last state at the horizon is looked up among all, and a delete stays while a state
	// before it does: after a clock was set back, a later state may have an earlier time.
	if _, err := tx.Exec(ctx, fmt.Sprintf(`WITH passed AS (
			SELECT k.key, (SELECT max(m.seq) FROM %[1]s m WHERE m.cluster = $1 AND m.key = k.key AND m.heard <= $3) AS seq
			FROM (SELECT DISTINCT key FROM %[1]s WHERE cluster = $1 AND heard > coalesce($2::timestamptz, '-infinity') AND heard <= $3) k)
		DELETE FROM %[1]s h USING passed p WHERE h.cluster = $1 AND h.key = p.key AND h.heard <= $3
			AND (h.seq < p.seq OR h.seq = p.seq AND h.operation = 'deleted'
				AND NOT EXISTS (SELECT FROM %[1]s e WHERE e.cluster = $1 AND e.key = h.key AND e.seq < h.seq AND e.heard > $3))`, history), s.db.opts.Cluster, since, horizon); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE tarn_feeds SET history_since = $3 WHERE cluster = $1 AND resource = $2`, s.db.opts.Cluster, s.table.name, horizon); err != nil {
		return err
	}
	if caughtUp {
		s.retained = time.Now()
	}
	return nil
}
