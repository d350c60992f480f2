package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// session is what a transaction that writes has the server do otherwise. It ends with it,
// so that it holds behind PgBouncer too.
type session struct {
	// lz4 says that large values are compressed by LZ4. Postgres uses its own pglz unless it is
	// told: a pod of a bare COPY then costs it 653 µs of CPU instead of 250 (bench/engines).
	lz4 bool
}

// idleInTransaction is how long a connection may say nothing within a transaction before
// the server ends it: a feeder whose network has gone must not hold its row for hours.
const idleInTransaction = "60s"

// findSession asks what the server can do. A compression that somebody has chosen, for the
// server, the database or the user, stays.
func (db *DB) findSession(ctx context.Context) (found session, err error) {
	err = db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_settings
		WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY (enumvals))`).Scan(&found.lz4)
	return found, err
}

func (s session) apply(ctx context.Context, tx pgx.Tx) error {
	statement := "SELECT set_config('idle_in_transaction_session_timeout', '" + idleInTransaction + "', true)"
	if s.lz4 {
		statement += ", set_config('default_toast_compression', 'lz4', true)"
	}
	_, err := tx.Exec(ctx, statement)
	return err
}
