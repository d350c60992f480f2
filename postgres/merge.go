package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarnproject/tarn"
)

// merge brings what was copied into the tables.
func (s *Sink[T]) merge(ctx context.Context, tx pgx.Tx, b tarn.Batch[T]) error {
	cluster, resource := s.db.opts.Cluster, s.table.name
	if err := s.mergeStates(ctx, tx, b.Whole); err != nil {
		return err
	}
	args := []any{cluster, resource}
	if b.Whole {
		epochs, err := json.Marshal(epochs(b.Positions))
		if err != nil {
			return err
		}
		args = append(args, string(epochs))
	}
	if _, err := tx.Exec(ctx, s.deleteSQL(b.Whole), args...); err != nil {
		return err
	}
	for _, statement := range s.markSQL(b.Whole) {
		if _, err := tx.Exec(ctx, statement, cluster, resource); err != nil {
			return err
		}
	}
	if time.Since(s.pruned) < pruneEvery {
		return nil
	}
	_, err := tx.Exec(ctx, `DELETE FROM tarn_tombstones WHERE cluster = $1 AND resource = $2 AND deleted_at < clock_timestamp() - $3::interval`,
		cluster, resource, s.db.opts.Tombstones)
	if err == nil {
		s.pruned = time.Now()
	}
	return err
}

// epochs are those of the sections, which are named by namespaces. The only one has all objects.
func epochs(positions []tarn.Position) map[string]string {
	all := map[string]string{}
	for _, p := range positions {
		all[p.Section] = p.Epoch
	}
	if len(positions) == 1 {
		all[""] = positions[0].Epoch
	}
	return all
}

// mergeStates writes the states themselves.
func (s *Sink[T]) mergeStates(ctx context.Context, tx pgx.Tx, whole bool) error {
	if s.db.opts.History {
		// Before the table changes: a whole state is compared with it.
		if _, err := tx.Exec(ctx, s.statesSQL(whole), s.db.opts.Cluster, s.table.name); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, s.upsertSQL(), s.db.opts.Cluster)
	return err
}

// pruneEvery is how often old tombstones are removed.
const pruneEvery = 10 * time.Minute

// values are the columns of the resource's table except for cluster and key.
func (t table) values() []column { return t.columns[len(identity):] }

// upsertSQL writes the last state of each key. A row that has it already is not touched.
func (s *Sink[T]) upsertSQL() string {
	t := s.table
	set := ""
	for i, c := range t.values() {
		if i > 0 {
			set += ", "
		}
		set += quote(c.Name) + " = excluded." + quote(c.Name)
	}
	return fmt.Sprintf(`INSERT INTO %s AS t (cluster, key, %s)
		SELECT $1, key, %s FROM %s WHERE tarn_last AND operation <> 'deleted' AND problem IS NULL
		ON CONFLICT (cluster, key) DO UPDATE SET %s
		WHERE ROW(%s) IS DISTINCT FROM ROW(%s)`,
		t.quoted(), names(t.values(), ""), names(t.values(), ""), t.staged().quoted(), set, names(t.values(), "t."), names(t.values(), "excluded."))
}

// deleteSQL removes the rows of deleted objects, or, for a whole state, of all that are not
// in it, and leaves tombstones. A history gets the deletes that nobody saw.
func (s *Sink[T]) deleteSQL(whole bool) string {
	t, staged := s.table, s.table.staged().quoted()
	left := fmt.Sprintf(`gone AS (DELETE FROM %s t USING %s s WHERE t.cluster = $1 AND s.key = t.key AND s.tarn_last AND s.operation = 'deleted'
		RETURNING t.*, coalesce(nullif(s.version, ''), t.resource_version) AS tarn_version, s.epoch AS tarn_epoch, s.inferred AS tarn_inferred)`, t.quoted(), staged)
	if whole {
		// A whole state may be followed by changes, deletes among them, which the history has.
		// They are joined: to look them up for each row would read the whole batch each time.
		left = fmt.Sprintf(`removed AS (DELETE FROM %s t WHERE t.cluster = $1 AND NOT EXISTS
				(SELECT FROM %s s WHERE s.key = t.key AND s.tarn_last AND s.operation <> 'deleted') RETURNING t.*),
			gone AS (SELECT r.*, coalesce(nullif(s.version, ''), r.resource_version) AS tarn_version, coalesce($3::text::jsonb ->> split_part(r.key, '/', 1), $3::text::jsonb ->> '', '') AS tarn_epoch,
				coalesce(s.inferred, true) AS tarn_inferred, s.key IS NOT NULL AS tarn_told
				FROM removed r LEFT JOIN %s s ON s.key = r.key AND s.tarn_last AND s.operation = 'deleted')`, t.quoted(), staged, staged)
	}
	if whole && s.db.opts.History {
		shared := slices.Concat(t.own(), content)
		left += fmt.Sprintf(`, unseen AS (INSERT INTO %s (cluster, key, operation, version, epoch, inferred, rewound, heard, %s)
			SELECT cluster, key, 'deleted', tarn_version, tarn_epoch, true, false, clock_timestamp(), %s FROM gone WHERE NOT tarn_told)`,
			t.history().quoted(), names(shared, ""), names(shared, ""))
	}
	return `WITH ` + left + `
		INSERT INTO tarn_tombstones (cluster, resource, key, uid, resource_version, epoch, inferred)
		SELECT $1, $2, key, uid, tarn_version, tarn_epoch, tarn_inferred FROM gone
		ON CONFLICT (cluster, resource, key) DO UPDATE SET uid = excluded.uid, resource_version = excluded.resource_version,
			epoch = excluded.epoch, inferred = excluded.inferred, deleted_at = excluded.deleted_at`
}

// markSQL removes tombstones of keys that are there again, and keeps the quarantine.
func (s *Sink[T]) markSQL(whole bool) []string {
	staged := s.table.staged().quoted()
	cured := fmt.Sprintf(`DELETE FROM tarn_quarantine q USING %s s WHERE q.cluster = $1 AND q.resource = $2 AND q.key = s.key AND s.tarn_last
		AND (s.problem IS NULL OR s.operation = 'deleted')`, staged)
	if whole {
		cured = fmt.Sprintf(`DELETE FROM tarn_quarantine q WHERE q.cluster = $1 AND q.resource = $2
			AND NOT EXISTS (SELECT FROM %s s WHERE s.key = q.key AND s.tarn_last AND s.problem IS NOT NULL AND s.operation <> 'deleted')`, staged)
	}
	return []string{
		fmt.Sprintf(`DELETE FROM tarn_tombstones x USING %s s WHERE x.cluster = $1 AND x.resource = $2 AND x.key = s.key
			AND s.tarn_last AND s.operation <> 'deleted'`, staged),
		cured,
		fmt.Sprintf(`INSERT INTO tarn_quarantine AS q (cluster, resource, key, resource_version, reason)
			SELECT $1, $2, key, version, problem FROM %s WHERE tarn_last AND problem IS NOT NULL AND operation <> 'deleted'
			ON CONFLICT (cluster, resource, key) DO UPDATE SET resource_version = excluded.resource_version, reason = excluded.reason`, staged),
	}
}

// statesSQL adds the states to the history. A whole state adds only objects that the table
// does not have so, whatever its columns are, and an object that stays in quarantine is not
// added twice; its delete may have the same version, and is added.
func (s *Sink[T]) statesSQL(whole bool) string {
	t := s.table
	known := "false"
	if whole {
		known = fmt.Sprintf(`s.tarn_first AND s.problem IS NULL AND s.operation <> 'deleted' AND EXISTS
			(SELECT FROM %s t WHERE t.cluster = $1 AND t.key = s.key AND t.object = s.object
				AND t.resource_version IS NOT DISTINCT FROM s.resource_version)`, t.quoted())
	}
	shared := slices.Concat(t.own(), content)
	return fmt.Sprintf(`INSERT INTO %s (cluster, key, operation, version, epoch, inferred, rewound, heard, problem, %s)
		SELECT $1, key, operation, version, epoch, inferred, rewound, heard, problem, %s FROM %s s
		WHERE NOT (%s) AND NOT (s.problem IS NOT NULL AND s.operation <> 'deleted' AND EXISTS
			(SELECT FROM tarn_quarantine q WHERE q.cluster = $1 AND q.resource = $2 AND q.key = s.key AND q.resource_version = s.version))
		ORDER BY tarn_ord`, t.history().quoted(), names(shared, ""), names(shared, "s."), t.staged().quoted(), known)
}
