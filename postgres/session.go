package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// guards are settings of every transaction. They end with it, so that they hold behind
// PgBouncer too, and nobody else gets them.
//
//   - A feeder whose network or machine has gone must not hold its row, or its session, for
//     hours. The server ends a transaction in which nothing is said; while it waits for the
//     rest of a COPY that limit does not count, and only the probes of TCP find that nobody is
//     there, by default after two hours.
//   - A first state is one statement that takes minutes, and a limit for statements would
//     end it each time. As in pg_dump, the limit is off.
//   - A pooler may need pgx to read times as text, and it reads one form of them.
const guards = `SELECT set_config('idle_in_transaction_session_timeout', '60s', true), set_config('statement_timeout', '0', true), set_config('datestyle', 'ISO', true),
	set_config('tcp_keepalives_idle', '15', true), set_config('tcp_keepalives_interval', '5', true), set_config('tcp_keepalives_count', '6', true)`

// transaction does something in a transaction that is committed if it does not fail.
func (db *DB) transaction(ctx context.Context, do func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, db.settings()); err != nil {
			return err
		}
		return do(tx)
	})
	db.heed(err)
	return err
}

// heed gives up all connections if they lead to a server that takes no writes, as one that is
// no longer the primary: the address may lead to another one by now. If a table is missing,
// Tarn's own may be too: somebody may have dropped the schema.
func (db *DB) heed(err error) {
	if isMissing(err) {
		db.mu.Lock()
		db.migrated = false
		db.mu.Unlock()
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == readOnly {
		db.pool.Reset()
		db.leases.pool.Reset()
	}
}

const readOnly = "25006"

// ErrUnusable says that a database cannot be fed in its present state: change the database,
// or use another version of this program.
var ErrUnusable = errors.New("the database cannot be used")

// checkEncoding refuses a database that cannot have every text.
func (db *DB) checkEncoding(ctx context.Context) error {
	var encoding string
	if err := db.pool.QueryRow(ctx, `SELECT current_setting('server_encoding')`).Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: its encoding is %s, and objects have characters that only UTF8 has; make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", ErrUnusable, encoding)
	}
	return nil
}

// session is what transactions have the server do otherwise.
type session struct {
	// lz4 says that large values are compressed by LZ4. Postgres uses its own pglz unless it
	// is set to LZ4: a pod of a bare COPY then costs it 653 µs of CPU instead of 250
	// (bench/engines).
	lz4 bool
}

// settings is the statement that each transaction begins with.
func (db *DB) settings() string {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.session.lz4 {
		return guards + `, set_config('default_toast_compression', 'lz4', true)`
	}
	return guards
}

// findSession asks what the server can do. A compression that somebody has chosen, for the
// server, the database or the user, stays.
func (db *DB) findSession(ctx context.Context) (found session, err error) {
	err = db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_settings
		WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY (enumvals))`).Scan(&found.lz4)
	return found, err
}
