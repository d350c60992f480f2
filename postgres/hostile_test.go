package postgres

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/pgtest"
)

// A table that somebody has renamed, to keep it, is made and filled again, beside the indexes
// of the old one.
func TestTableRenamedByHand(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	s := opened(t, db)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	_, err := db.pool.Exec(t.Context(), "ALTER TABLE things RENAME TO things_kept; ALTER TABLE things_history RENAME TO things_history_kept")
	must(t, err)
	s.lostBy(t, batch("2", thing("a", "2", "")), whole(batch("2", thing("a", "2", ""))))
	db.wants(t, "SELECT resource_version FROM things", "2")
	db.wants(t, "SELECT version FROM things_history", "2")
	db.wants(t, "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema AND tablename IN ('things', 'things_kept')", "6")
}

// Positions that somebody has edited, so that they cannot be read, are none: everything is
// compared, and the next commit replaces them.
func TestPositionsEditedByHand(t *testing.T) {
	db := connect(t, database(t), Options{History: true})
	for _, edited := range []string{`[{"version": 1}]`, `{"version": "1"}`, `"1"`, `7`, `null`} {
		s := NewSink(db, "things", "all", plain{})
		must(t, open(t.Context(), s))
		must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
		s.Close()
		_, err := db.pool.Exec(t.Context(), "UPDATE tarn_feeds SET positions = $1::text::jsonb", edited)
		must(t, err)
		kept, err := s.Open(t.Context(), nil)
		if err != nil || len(kept.Positions) > 0 {
			t.Fatalf("with %s it begins at %v (%v)", edited, kept.Positions, err)
		}
		must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
		db.wants(t, "SELECT version FROM tarn_positions", "1")
		s.Close()
	}
	db.wants(t, "SELECT version FROM things_history", "1")
}

// A table that is dropped or renamed is filled from its history, no matter who creates it
// again: the history has no state twice, and it has the deletes that nobody saw.
func TestTableOfAHistoryMadeAnew(t *testing.T) {
	for name, other := range map[string]bool{"by itself": false, "by another": true} {
		t.Run(name, func(t *testing.T) {
			address := database(t)
			db := connect(t, address, Options{History: true})
			s := opened(t, db)
			must(t, s.Commit(t.Context(), whole(batch("3", thing("a", "1", ""), thing("b", "2", ""), thing("c", "3", ""), thing("d", "3", "")))))
			must(t, s.Commit(t.Context(), batch("4", gone("d", "4"))))
			_, err := db.pool.Exec(t.Context(), "DROP TABLE things")
			must(t, err)
			if other {
				opened(t, connect(t, address, Options{Cluster: "other"}))
			}
			s.lostBy(t, batch("5", thing("a", "5", "")), whole(batch("6", thing("a", "5", ""), thing("c", "3", ""))))
			db.wants(t, "SELECT key, resource_version FROM things ORDER BY key", "a|5", "c|3")
			db.wants(t, "SELECT key, operation, version, inferred FROM things_history ORDER BY seq",
				"a|added|1|false", "b|added|2|false", "c|added|3|false", "d|added|3|false", "d|deleted|4|false", "a|added|5|false", "b|deleted|2|true")
		})
	}
}

// newName is one that no other database of the server has.
func newName() string { return "db_" + strings.ToLower(rand.Text()) }

// databaseIn makes a database of its own and returns its name.
func databaseIn(t *testing.T, how string) string {
	t.Helper()
	if server == nil {
		t.Skip(pgtest.ErrNotInstalled)
	}
	name := newName()
	_, err := connect(t, server.URL("postgres"), Options{}).pool.Exec(t.Context(), "CREATE DATABASE "+name+" "+how)
	must(t, err)
	return name
}

// A database that cannot have every character is refused, instead of being given bytes that
// it treats as other characters.
func TestEncoding(t *testing.T) {
	db := connect(t, server.URL(databaseIn(t, "ENCODING 'LATIN1' TEMPLATE template0")), Options{})
	if err := open(t.Context(), NewSink(db, "things", "all", plain{})); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "LATIN1") {
		t.Errorf("it says %v", err)
	}
	db.wants(t, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "0")
}

// Somebody has chosen another encoding for all clients of a database: objects are what they
// are nevertheless.
func TestClientEncoding(t *testing.T) {
	name := databaseIn(t, "")
	admin := connect(t, server.URL(name), Options{})
	_, err := admin.pool.Exec(t.Context(), "ALTER DATABASE "+name+" SET client_encoding = 'LATIN1'")
	must(t, err)
	admin.pool.Reset()
	s := NewSink(admin, "things", "all", raw{})
	must(t, open(t.Context(), s))
	t.Cleanup(s.Close)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", `{"a": "é"}`)))))
	admin.wants(t, "SELECT length(object ->> 'a') FROM things", "1")
}

// Limits that somebody has set for the user do not keep a large commit from ending, and a
// client that has gone is found soon.
func TestLimitsOfTheUser(t *testing.T) {
	db := connect(t, database(t)+"&statement_timeout=100&default_transaction_isolation=serializable", Options{})
	must(t, db.Claim(t.Context(), "things"))
	err := db.transaction(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT pg_sleep(0.2)"); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `SELECT name || ' ' || source FROM pg_settings WHERE name LIKE 'tcp_keepalives%' AND source = 'session' ORDER BY name`)
		if err != nil {
			return err
		}
		set, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(set) != 3 {
			t.Errorf("of the probes of TCP there are set %q", set)
		}
		var level string
		err = errors.Join(err, tx.QueryRow(t.Context(), "SHOW transaction_isolation").Scan(&level))
		if level != "read committed" {
			t.Errorf("it is isolated as %s", level)
		}
		return err
	})
	must(t, err)
}

// A server that is no longer the primary keeps its connections. They are not used again,
// because the address may lead to another server.
func TestServerBecomesReadOnly(t *testing.T) {
	own, err := pgtest.New()
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	must(t, err)
	defer func() { must(t, own.Close()) }()
	db, err := Connect(own.URL("postgres"), Options{})
	must(t, err)
	defer db.Close()
	s := NewSink(db, "things", "all", plain{})
	must(t, open(t.Context(), s))
	defer s.Close()
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	process := func() string { return db.query(t, "SELECT pg_backend_pid()")[0] }
	for what, b := range map[string]tarn.Batch[object]{"a change": batch("2", thing("a", "2", "")), "a position": batch("2")} {
		set(t, db, "on")
		before := process()
		if err := s.Commit(t.Context(), b); err == nil {
			t.Fatal(what, "is written by a server that is read only")
		} else if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != readOnly {
			t.Fatal(err)
		}
		if process() == before {
			t.Error(what, ": the connection is used again")
		}
		set(t, db, "off")
	}
	must(t, s.Commit(t.Context(), batch("3", thing("a", "3", ""))))
}

// set makes all sessions of a server read only, or not.
func set(t *testing.T, db *DB, to string) {
	t.Helper()
	_, err := db.pool.Exec(t.Context(), "SET default_transaction_read_only = off")
	must(t, err)
	_, err = db.pool.Exec(t.Context(), "ALTER SYSTEM SET default_transaction_read_only = "+to)
	must(t, err)
	_, err = db.pool.Exec(t.Context(), "RESET default_transaction_read_only")
	must(t, err)
	_, err = db.pool.Exec(t.Context(), "SELECT pg_reload_conf()")
	must(t, err)
	eventually(t, "the setting", func() bool { return db.query(t, "SHOW default_transaction_read_only")[0] == to })
}

// Row level security that hides rows from the feeder is noticed, no matter who owns the table.
func TestRowsHiddenFromTheFeeder(t *testing.T) {
	address := database(t)
	owner := connect(t, address, Options{})
	s := opened(t, owner)
	must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
	s.Close()
	schema := owner.query(t, "SELECT current_schema")[0]
	for _, statement := range []string{
		"CREATE ROLE guest_" + schema + " LOGIN", "GRANT USAGE, CREATE ON SCHEMA " + schema + " TO guest_" + schema,
		"GRANT ALL ON ALL TABLES IN SCHEMA " + schema + " TO guest_" + schema, "ALTER TABLE things ENABLE ROW LEVEL SECURITY",
	} {
		_, err := owner.pool.Exec(t.Context(), statement)
		must(t, err)
	}
	guest := connect(t, strings.Replace(address, "//tarn@", "//guest_"+schema+"@", 1), Options{})
	eventually(t, "the lease is free", func() bool { return !isOwned(guest.Claim(t.Context(), "things")) })
	if err := open(t.Context(), NewSink(guest, "things", "all", plain{})); err == nil || !strings.Contains(err.Error(), "row level security") {
		t.Errorf("it says %v", err)
	}
	_, err := owner.pool.Exec(t.Context(), "ALTER TABLE things DISABLE ROW LEVEL SECURITY")
	must(t, err)
	own := NewSink(guest, "things", "all", plain{})
	guest.unuse(table{name: "things"})
	must(t, open(t.Context(), own))
	defer own.Close()
	must(t, own.Commit(t.Context(), batch("2", thing("a", "2", ""))))
}

// Somebody has chosen another form of times and numbers for all clients, and a pooler needs
// values as text.
func TestFormsOfTheUser(t *testing.T) {
	for _, mode := range []string{"cache_describe", "exec", "simple_protocol"} {
		name := databaseIn(t, "")
		admin := connect(t, server.URL(name), Options{})
		for _, setting := range []string{"datestyle = 'German'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kathmandu'", "extra_float_digits = -15"} {
			_, err := admin.pool.Exec(t.Context(), "ALTER DATABASE "+name+" SET "+setting)
			must(t, err)
		}
		s := NewSink(connect(t, server.URL(name)+"&default_query_exec_mode="+mode, Options{History: true, HistoryAge: time.Hour}), "things", "all", plain{})
		must(t, open(t.Context(), s))
		must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", `back\slash ' quote`)))))
		must(t, s.Commit(t.Context(), batch("2", thing("b", "2", ""))))
		s.Close()
		kept, err := s.Open(t.Context(), nil)
		if err != nil || time.Since(kept.LastContact).Abs() > time.Minute {
			t.Errorf("%s: the last contact was at %v (%v)", mode, kept.LastContact, err)
		}
		if all, err := s.Load(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("%s: it has %v (%v)", mode, all, err)
		}
		s.Close()
	}
}
