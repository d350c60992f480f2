package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// migrations make the tables that Tarn keeps for itself, one step after the other. The
// number of steps taken is in tarn_schema. A step is never changed once it was released.
var migrations = []string{
	// 1: what is fed by which feeder, how far it has come, and what is not in the tables.
	`CREATE TABLE tarn_feeds (
		cluster     text NOT NULL,
		resource    text NOT NULL,
		owner       text NOT NULL DEFAULT '',
		holder      text NOT NULL DEFAULT '',
		lease_until timestamptz NOT NULL DEFAULT 'epoch',
		source      text NOT NULL DEFAULT '',
		selection   text NOT NULL DEFAULT '',
		history     boolean NOT NULL DEFAULT false,
		positions   jsonb,
		batch       text NOT NULL DEFAULT '',
		heard       timestamptz,
		committed   timestamptz,
		PRIMARY KEY (cluster, resource));
	CREATE VIEW tarn_positions AS
		SELECT f.cluster, f.resource, p ->> 'section' AS section, p ->> 'epoch' AS epoch, p ->> 'version' AS version,
			(p ->> 'complete')::boolean AS complete, f.heard, f.committed
		FROM tarn_feeds f, jsonb_array_elements(f.positions) p;
	CREATE TABLE tarn_tables (
		name    text PRIMARY KEY,
		columns jsonb NOT NULL);
	CREATE TABLE tarn_gaps (
		id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		cluster      text NOT NULL,
		resource     text NOT NULL,
		section      text NOT NULL,
		epoch        text NOT NULL,
		from_version text NOT NULL,
		to_version   text NOT NULL,
		cause        text NOT NULL,
		noted        timestamptz NOT NULL DEFAULT clock_timestamp(),
		UNIQUE (cluster, resource, section, epoch, from_version, to_version, cause));
	CREATE TABLE tarn_tombstones (
		cluster          text NOT NULL,
		resource         text NOT NULL,
		key              text NOT NULL,
		uid              text,
		resource_version text,
		epoch            text NOT NULL,
		inferred         boolean NOT NULL,
		deleted_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
		PRIMARY KEY (cluster, resource, key));
	CREATE INDEX tarn_tombstones_deleted_at ON tarn_tombstones (deleted_at);
	CREATE TABLE tarn_quarantine (
		cluster          text NOT NULL,
		resource         text NOT NULL,
		key              text NOT NULL,
		resource_version text,
		reason           text NOT NULL,
		since            timestamptz NOT NULL DEFAULT clock_timestamp(),
		PRIMARY KEY (cluster, resource, key));`,
	// 2: from when on a history is complete.
	`ALTER TABLE tarn_feeds ADD COLUMN history_since timestamptz;
	CREATE VIEW tarn_histories AS
		SELECT cluster, resource, history_since AS since FROM tarn_feeds WHERE history;`,
}

// layoutLock serialises changes of tables between processes. It is held by transactions,
// never by sessions.
const layoutLock = 0x7461726e // "tarn"

// migrate brings Tarn's own tables to the newest version, once for each DB.
func (db *DB) migrate(ctx context.Context) error {
	db.mu.Lock()
	done := db.migrated
	db.mu.Unlock()
	if done {
		return nil
	}
	if err := db.checkEncoding(ctx); err != nil {
		return err
	}
	if err := db.migrateTo(ctx, migrations); err != nil {
		return err
	}
	found, err := db.findSession(ctx)
	if err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.migrated, db.session = true, found
	return nil
}

func (db *DB) migrateTo(ctx context.Context, steps []string) error {
	return db.layoutChange(ctx, func(tx pgx.Tx) error {
		var known bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('tarn_schema') IS NOT NULL`).Scan(&known); err != nil {
			return err
		}
		version := 0
		if known {
			if err := tx.QueryRow(ctx, `SELECT version FROM tarn_schema`).Scan(&version); err != nil {
				return fmt.Errorf("the version of the tables cannot be read: %w", err)
			}
		} else if _, err := tx.Exec(ctx, `CREATE TABLE tarn_schema (version integer NOT NULL); INSERT INTO tarn_schema VALUES (0)`); err != nil {
			return err
		}
		if version > len(steps) {
			return fmt.Errorf("%w: the tables are of version %d, and this program knows %d: a newer tarn has written them; use that one, or another schema by search_path in the address", ErrUnusable, version, len(steps))
		}
		for i, step := range steps[version:] {
			if _, err := tx.Exec(ctx, step); err != nil {
				return fmt.Errorf("step %d of the tables failed: %w", version+i+1, err)
			}
		}
		if version == len(steps) {
			return nil
		}
		_, err := tx.Exec(ctx, `UPDATE tarn_schema SET version = $1`, len(steps))
		return err
	})
}

// layoutChange runs a transaction that may change tables. Only one does so at a time.
func (db *DB) layoutChange(ctx context.Context, do func(pgx.Tx) error) error {
	return db.transaction(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(layoutLock)); err != nil {
			return err
		}
		return do(tx)
	})
}
