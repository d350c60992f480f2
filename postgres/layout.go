package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// prepare makes the table of a resource, and its history if wanted, or brings them to the
// columns that are wanted now. It returns them as they are then: columns that another
// cluster's feeder needs stay, and one that both need with different types becomes text.
func (db *DB) prepare(ctx context.Context, wanted table) (have table, err error) {
	err = db.layoutChange(ctx, func(tx pgx.Tx) error {
		var made bool
		if have, made, err = arrange(ctx, tx, wanted, table.create); err != nil {
			return err
		}
		if made {
			// Rows are missing, or lack a column: everything is sent again, and
			// what differs is written. Without their batch, feeders of other clusters
			// that are running notice it too.
			if _, err := tx.Exec(ctx, `UPDATE tarn_feeds SET positions = NULL, batch = '' WHERE resource = $1`, wanted.name); err != nil {
				return err
			}
			if err := refill(ctx, tx, have); err != nil {
				return err
			}
		}
		if !db.opts.History {
			return nil
		}
		history := have.history()
		if _, made, err = arrange(ctx, tx, history, table.createHistory); err != nil || !made {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE tarn_feeds SET history = false WHERE resource = $1
			AND NOT EXISTS (SELECT FROM `+history.quoted()+`)`, wanted.name)
		return err
	})
	if err != nil {
		return table{}, fmt.Errorf("postgres: %s: %w", wanted.name, err)
	}
	return have, nil
}

// refill gives a table that had to be created again the rows that its history ends with, if it
// has one. They are then compared with the whole content, so that the history has no state
// twice, and gets the deletes that nobody saw.
func refill(ctx context.Context, tx pgx.Tx, t table) error {
	history := t.history()
	actual, err := columnsOf(ctx, tx, history.name)
	if err != nil || len(actual) == 0 {
		return err
	}
	shared := slices.DeleteFunc(slices.Concat(t.own(), content), func(c column) bool {
		return !slices.Contains(actual, column{Name: c.Name, Type: c.Type})
	})
	_, err = tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (cluster, key, %s) SELECT cluster, key, %s
		FROM (SELECT DISTINCT ON (cluster, key) * FROM %s WHERE problem IS NULL AND NOT EXISTS (SELECT FROM %s)
			AND cluster IN (SELECT cluster FROM tarn_feeds WHERE resource = $1 AND history) ORDER BY cluster, key, seq DESC) last
		WHERE operation <> 'deleted'`, t.quoted(), names(shared, ""), names(shared, ""), history.quoted(), t.quoted()), t.name)
	return err
}

// arrange makes one table as wanted, and says whether anything had to be made.
func arrange(ctx context.Context, tx pgx.Tx, wanted table, create func(table) []string) (table, bool, error) {
	recorded, of, known, err := recordOf(ctx, tx, wanted.name)
	if err != nil {
		return table{}, false, err
	}
	actual, err := columnsOf(ctx, tx, wanted.name)
	if err != nil {
		return table{}, false, err
	}
	switch {
	case len(actual) == 0: // it is new, or somebody has dropped it
		return wanted, true, build(ctx, tx, wanted, create(wanted))
	case !known:
		return table{}, false, fmt.Errorf("there is a table %s that Tarn has not made, or whose row in tarn_tables somebody deleted; rename it, drop it if it was Tarn's, or name another schema by search_path in the address", wanted.name)
	}
	switch {
	case wanted.of == "" || wanted.of == of:
	case of == "": // it was recorded by an older version
		if _, err := tx.Exec(ctx, `UPDATE tarn_tables SET resource = $2 WHERE name = $1`, wanted.name, wanted.of); err != nil {
			return table{}, false, err
		}
	default:
		return table{}, false, otherResource(wanted, of)
	}
	changed := differences(recorded, actual)
	hindrances, err := hindrancesOf(ctx, tx, wanted)
	if err != nil {
		return table{}, false, err
	}
	if changed = append(changed, hindrances...); len(changed) > 0 {
		return table{}, false, fmt.Errorf("the table %s was changed by hand: %s; undo the change, or drop the table, and it is filled again", wanted.name, strings.Join(changed, ", "))
	}
	statements, retyped := wanted.alterations(recorded)
	have := merged(wanted, recorded)
	if len(statements) == 0 && len(retyped) == 0 {
		return have, false, nil
	}
	for _, c := range retyped {
		if err := makeText(ctx, tx, wanted, c); err != nil {
			return table{}, false, err
		}
	}
	return have, true, build(ctx, tx, have, statements)
}

// alterations are the statements that add to a table what it does not have, and the columns that
// become text, as they were recorded.
func (t table) alterations(recorded []column) (all []string, retyped []column) {
	for _, c := range t.columns {
		i := slices.IndexFunc(recorded, c.sameName)
		switch {
		case i < 0:
			all = append(all, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s", t.quoted(), c.definition()))
			if c.index && !strings.HasSuffix(t.name, historySuffix) {
				all = append(all, t.createIndex("("+quote(c.Name)+")"))
			}
		case recorded[i].Type != c.Type && recorded[i].Type != text:
			retyped = append(retyped, recorded[i])
		}
	}
	return all, retyped
}

// makeText makes a column text. Postgres refuses that while a view, a policy or the like uses the
// column, which then is named.
func makeText(ctx context.Context, tx pgx.Tx, t table, c column) error {
	trial, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err = trial.Exec(ctx, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE text", t.quoted(), quote(c.Name))); err == nil {
		return trial.Commit(ctx)
	}
	err = fmt.Errorf("the column %s of %s was %s and has to become text, because the resource has values of another type there now: %w", c.Name, t.name, c.Type, err)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.Code != notSupported && !isMissing(refused) {
		return err
	}
	if failed := trial.Rollback(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	users, failed := usersOf(ctx, tx, t, c)
	if failed != nil || len(users) == 0 {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%w; drop the %s, and make it again when the column is text: the feeder tries again by itself", err, strings.Join(users, ", the "))
}

// notSupported is the answer to an alteration of a column that a view uses.
const notSupported = "0A000"

// usersOf names what somebody has made that uses a column: views, also those of views, and what
// else Postgres does not adapt to another type.
func usersOf(ctx context.Context, tx pgx.Tx, t table, c column) ([]string, error) {
	rows, err := tx.Query(ctx, `
		WITH RECURSIVE uses AS (
			SELECT d.classid, d.objid FROM pg_depend d, pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attname = $2
				AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum),
		views (id) AS (
			SELECT r.ev_class FROM uses u, pg_rewrite r WHERE u.classid = 'pg_rewrite'::regclass AND r.oid = u.objid
			UNION SELECT r.ev_class FROM views v, pg_depend d, pg_rewrite r WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = v.id
				AND d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid)
		SELECT CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' ELSE 'rule of ' END || id::regclass
			FROM views, pg_class c WHERE c.oid = id
		UNION SELECT pg_describe_object(classid, objid, 0) FROM uses LEFT JOIN pg_index i ON classid = 'pg_class'::regclass AND indexrelid = objid
			WHERE classid NOT IN ('pg_rewrite'::regclass, 'pg_statistic_ext'::regclass)
				AND (classid <> 'pg_class'::regclass OR indpred IS NOT NULL OR indexprs IS NOT NULL)
		ORDER BY 1`, quote(t.name), c.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// merged is a table with the columns that are wanted, in their order, and those that it had.
func merged(wanted table, recorded []column) table {
	have := table{name: wanted.name, of: wanted.of, columns: slices.Clone(wanted.columns)}
	for i, c := range have.columns {
		if at := slices.IndexFunc(recorded, c.sameName); at >= 0 && recorded[at].Type != c.Type {
			have.columns[i].Type = text
		}
	}
	var more []column
	for _, c := range recorded {
		if !slices.ContainsFunc(have.columns, c.sameName) {
			more = append(more, c)
		}
	}
	have.columns = slices.Insert(have.columns, len(have.columns)-len(content), more...)
	return have
}

// differences says how a table differs from what was recorded when it was made.
func differences(recorded, actual []column) (all []string) {
	for _, c := range recorded {
		i := slices.IndexFunc(actual, c.sameName)
		switch {
		case i < 0:
			all = append(all, fmt.Sprintf("the column %s is missing", c.Name))
		case actual[i].Type != c.Type:
			all = append(all, fmt.Sprintf("the column %s is %s and was %s", c.Name, actual[i].Type, c.Type))
		}
	}
	for _, c := range actual {
		if !slices.ContainsFunc(recorded, c.sameName) {
			all = append(all, fmt.Sprintf("the column %s is new", c.Name))
		}
	}
	return all
}

// ErrOtherResource says that a table has another resource, whose name makes the same name of a
// table. A sink leaves such a table alone.
var ErrOtherResource = errors.New("it is the table of another resource")

func otherResource(t table, has string) error {
	return fmt.Errorf("%w: %s has %s, and %s has a table of the same name; feed one of them into another schema, by search_path in the address, or drop the table", ErrOtherResource, t.name, has, t.of)
}

// recordOf returns what was recorded of a table when it was made.
func recordOf(ctx context.Context, tx pgx.Tx, name string) (columns []column, of string, known bool, err error) {
	var raw []byte
	err = tx.QueryRow(ctx, `SELECT columns, resource FROM tarn_tables WHERE name = $1`, name).Scan(&raw, &of)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, "", false, nil
	}
	if err != nil {
		return nil, "", false, err
	}
	return columns, of, true, json.Unmarshal(raw, &columns)
}

func record(ctx context.Context, tx pgx.Tx, t table) error {
	raw, err := json.Marshal(t.columns)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO tarn_tables (name, columns, resource) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET columns = excluded.columns, resource = excluded.resource`, t.name, string(raw), t.of)
	return err
}

// columnsOf reads the columns of a table from the catalog.
func columnsOf(ctx context.Context, tx pgx.Tx, name string) ([]column, error) {
	rows, err := tx.Query(ctx, `SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, quote(name))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		return c, row.Scan(&c.Name, &c.Type)
	})
}

// hindrancesOf says what somebody has added to a table, or taken from it, that keeps rows from
// being written, or has them written otherwise without an error. Indexes, views and triggers
// that run afterwards are theirs to add.
func hindrancesOf(ctx context.Context, tx pgx.Tx, t table) ([]string, error) {
	key, required := t.keys()
	rows, err := tx.Query(ctx, `
		SELECT 'its primary key is not (' || array_to_string($2::text[], ', ') || ')' FROM pg_class c WHERE c.oid = to_regclass($1)
			AND $2::text[] IS DISTINCT FROM (SELECT array_agg(a.attname::text ORDER BY k.n) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (attnum, n), pg_attribute a
				WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = k.attnum)
		UNION ALL SELECT 'the column ' || attname || ' is generated' FROM pg_attribute
			WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated <> ''
		UNION ALL SELECT 'the column ' || attname || ' may not be NULL' FROM pg_attribute
			WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attnotnull AND attname <> ALL ($3::text[])
		UNION ALL SELECT 'the column seq is not numbered by itself' FROM pg_attribute
			WHERE attrelid = to_regclass($1) AND attname = 'seq' AND $2::text[] = '{seq}' AND attidentity = ''
		UNION ALL SELECT 'it has the rule ' || rulename FROM pg_rewrite WHERE ev_class = to_regclass($1)
		UNION ALL SELECT 'it has the trigger ' || tgname || ', which runs before rows are written' FROM pg_trigger
			WHERE tgrelid = to_regclass($1) AND NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 3 = 3
		UNION ALL SELECT 'its row level security holds for this user' FROM pg_class
			WHERE oid = to_regclass($1) AND (relforcerowsecurity OR row_security_active(oid))
		UNION ALL SELECT 'it is not logged, and would be empty after a crash' FROM pg_class WHERE oid = to_regclass($1) AND relpersistence <> 'p'`,
		quote(t.name), key, required)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// build runs statements that make a table, and records how it is then.
func build(ctx context.Context, tx pgx.Tx, t table, statements []string) error {
	if err := execAll(ctx, tx, statements); err != nil {
		return err
	}
	return record(ctx, tx, t)
}

func execAll(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%w (%s)", err, statement)
		}
	}
	return nil
}
