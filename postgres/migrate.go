package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// migrations make the tables that Tarn keeps for itself, one step after the other. The
// number of steps taken is in tarn_schema. A step is never changed once it was released. It can
// be taken again: that makes what somebody has dropped, and leaves everything else as it is.
var migrations = []string{
	// 1: what is fed by which feeder, how far it has come, and what is not in the tables.
	`CREATE TABLE IF NOT EXISTS tarn_feeds (
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
	CREATE OR REPLACE VIEW tarn_positions AS
		SELECT f.cluster, f.resource, p ->> 'section' AS section, p ->> 'epoch' AS epoch, p ->> 'version' AS version,
			(p ->> 'complete')::boolean AS complete, f.heard, f.committed
		FROM tarn_feeds f, jsonb_array_elements(f.positions) p;
	CREATE TABLE IF NOT EXISTS tarn_tables (
		name    text PRIMARY KEY,
		columns jsonb NOT NULL);
	CREATE TABLE IF NOT EXISTS tarn_gaps (
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
	CREATE TABLE IF NOT EXISTS tarn_tombstones (
		cluster          text NOT NULL,
		resource         text NOT NULL,
		key              text NOT NULL,
		uid              text,
		resource_version text,
		epoch            text NOT NULL,
		inferred         boolean NOT NULL,
		deleted_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
		PRIMARY KEY (cluster, resource, key));
	CREATE INDEX IF NOT EXISTS tarn_tombstones_deleted_at ON tarn_tombstones (deleted_at);
	CREATE TABLE IF NOT EXISTS tarn_quarantine (
		cluster          text NOT NULL,
		resource         text NOT NULL,
		key              text NOT NULL,
		resource_version text,
		reason           text NOT NULL,
		since            timestamptz NOT NULL DEFAULT clock_timestamp(),
		PRIMARY KEY (cluster, resource, key));`,
	// 2: from when on a history is complete.
	`ALTER TABLE tarn_feeds ADD COLUMN IF NOT EXISTS history_since timestamptz;
	CREATE OR REPLACE VIEW tarn_histories AS
		SELECT cluster, resource, history_since AS since FROM tarn_feeds WHERE history;`,
	// 3: which resource a table is of. Names of two may make the same name of a table.
	`ALTER TABLE tarn_tables ADD COLUMN IF NOT EXISTS resource text NOT NULL DEFAULT '';`,
}

// ownRelations are the tables and views that the migrations make.
var ownRelations = []string{"tarn_feeds", "tarn_positions", "tarn_tables", "tarn_gaps", "tarn_tombstones", "tarn_quarantine", "tarn_histories"}

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
		missing, err := missingOf(ctx, tx)
		if err != nil {
			return err
		}
		if version == len(steps) && len(missing) == 0 {
			return nil
		}
		taken := version
		if len(missing) > 0 {
			taken = 0
		}
		for i, step := range steps[taken:] {
			if _, err := tx.Exec(ctx, step); err != nil {
				return fmt.Errorf("step %d of the tables failed: %w", taken+i+1, err)
			}
		}
		if err := compensate(ctx, tx, missing); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE tarn_schema SET version = $1`, len(steps))
		return err
	})
}

// missingOf returns those of Tarn's own tables and views that are not there, because the database
// is new, or somebody has dropped them.
func missingOf(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL`, ownRelations)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// gapsDropped is the cause of a gap before which gaps are not known.
const gapsDropped = "gaps dropped"

// compensate makes good for what was in tables that had to be made again. In a new database
// nothing is fed, and it does nothing.
//
//   - tarn_gaps: there may have been gaps anywhere, so one says that nothing is known.
//   - tarn_quarantine: nobody knows which objects the tables lack, so all are compared.
//   - tarn_tables: the tables that a sink has opened are Tarn's. They are taken as they are.
//   - tarn_feeds: a feed without a row is compared as a whole, and a history begins again.
//   - tarn_tombstones: nothing depends on them.
func compensate(ctx context.Context, tx pgx.Tx, missing []string) error {
	lacks := func(name string) bool { return slices.Contains(missing, name) }
	if lacks("tarn_gaps") {
		// Somebody may have edited the positions: those that cannot be read are left out.
		if _, err := tx.Exec(ctx, `INSERT INTO tarn_gaps (cluster, resource, section, epoch, from_version, to_version, cause)
			SELECT f.cluster, f.resource, coalesce(p ->> 'section', ''), coalesce(p ->> 'epoch', ''), '', p ->> 'version', $1
			FROM tarn_feeds f, jsonb_array_elements(CASE jsonb_typeof(f.positions) WHEN 'array' THEN f.positions END) p
			WHERE p ->> 'version' <> '' ON CONFLICT DO NOTHING`, gapsDropped); err != nil {
			return err
		}
	}
	if lacks("tarn_quarantine") {
		if _, err := tx.Exec(ctx, `UPDATE tarn_feeds SET positions = NULL, batch = ''`); err != nil {
			return err
		}
	}
	if !lacks("tarn_tables") {
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT resource || suffix FROM tarn_feeds, unnest($1::text[]) suffix WHERE selection <> ''`, []string{"", historySuffix})
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		columns, err := columnsOf(ctx, tx, name)
		if err == nil && len(columns) > 0 {
			err = record(ctx, tx, table{name: name, columns: columns})
		}
		if err != nil {
			return err
		}
	}
	return nil
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
