package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"go.uber.org/goleak"

	"github.com/tarnproject/tarn/internal/pgtest"
)

// server is what the tests share; each has a database of its own.
var server *pgtest.Server

func TestMain(m *testing.M) {
	if from := os.Getenv(feedFrom); from != "" {
		if err := runFeeder(from, os.Getenv(feedTo)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var err error
	if server, err = pgtest.New(); err != nil && !errors.Is(err, pgtest.ErrNotInstalled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if server != nil {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// database makes an empty schema and returns the address by which tables are made there.
func database(t *testing.T) string {
	t.Helper()
	if server == nil {
		t.Skip(pgtest.ErrNotInstalled)
	}
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	must(t, err)
	defer conn.Close(t.Context())
	name := fmt.Sprintf("test%d", schemas.Add(1))
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+name)
	must(t, err)
	return server.URL("postgres") + "&search_path=" + name
}

// connect opens a database until the test ends.
func connect(t *testing.T, address string, opts Options) *DB {
	t.Helper()
	db, err := Connect(address, opts)
	must(t, err)
	t.Cleanup(db.Close)
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// query returns the rows of a statement, with | between their values.
func (db *DB) query(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	all, err := db.try(t.Context(), sql, args...)
	must(t, err)
	return all
}

// try is query of a database that may be unreachable, or have no tables yet.
func (db *DB) try(ctx context.Context, sql string, args ...any) (all []string, err error) {
	rows, err := db.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		cells := make([]string, len(values))
		for i, v := range values {
			if n, ok := v.(pgtype.Numeric); ok {
				v, _ = n.Value() // as text
			}
			if v != nil {
				cells[i] = fmt.Sprint(v)
			}
		}
		all = append(all, strings.Join(cells, "|"))
	}
	return all, rows.Err()
}
