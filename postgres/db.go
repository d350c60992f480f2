package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options shape a [DB].
type Options struct {
	// Cluster is the name of the cluster in all rows; "default" if empty. Several clusters
	// share the tables of a database.
	Cluster string
	// History keeps every state of every object in a table beside that of the resource.
	// HistoryAge is for how long; zero keeps all. The state at any moment within that time
	// can always be reconstructed.
	History    bool
	HistoryAge time.Duration
	// Tombstones is how long a deleted object is remembered in tarn_tombstones; 7 days if
	// zero.
	Tombstones time.Duration
	// Lease is how long a feeder may be silent before another one takes over; 15 s if zero.
	// The clock is the server's.
	Lease time.Duration
	// Delay is how long changes are collected before they are written, and BatchSize the
	// number of changed objects that ends the wait early; 200 ms and 4,096 if zero.
	Delay     time.Duration
	BatchSize int
	// MaxBytes bounds the states of each resource that wait in memory while the server is
	// slow or unreachable; 64 MiB if zero. Beyond it they are folded to the last state of
	// each object, and a gap names the range. It matters only with History.
	MaxBytes int64
}

const (
	defaultCluster    = "default"
	defaultTombstones = 7 * 24 * time.Hour
	defaultLease      = 15 * time.Second
	shortestLease     = 100 * time.Millisecond
	defaultDelay      = 200 * time.Millisecond
	connectTimeout    = 10 * time.Second
)

// validate checks the settings before a server is asked.
func (o Options) validate() error {
	if min(o.HistoryAge, o.Tombstones, o.Lease, o.Delay) < 0 || o.BatchSize < 0 || o.MaxBytes < 0 {
		return fmt.Errorf("postgres: a limit is negative: leave it out for its default: %+v", o)
	}
	if o.Lease != 0 && o.Lease < shortestLease {
		return fmt.Errorf("postgres: a lease of %s: it lasts for %s at least", o.Lease, shortestLease)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Cluster == "" {
		o.Cluster = defaultCluster
	}
	if o.Tombstones == 0 {
		o.Tombstones = defaultTombstones
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Delay == 0 {
		o.Delay = defaultDelay
	}
	return o
}

// DB is a database that sinks write to. Any number of goroutines may use it.
type DB struct {
	pool *pgxpool.Pool
	opts Options
	// token tells this DB from every other feeder, holder names it to people.
	token, holder string
	leases        *leases

	mu       sync.Mutex
	migrated bool
	// session is known when it is migrated.
	session session
	// open are the tables that have a sink in this process.
	open []table
}

// Connect returns the database of an address such as postgres://user@host/database. It
// makes no connection: a server that is unreachable does not keep a program from starting. The
// tables are made in the first schema of the connection's search_path.
func Connect(address string, opts Options) (*DB, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, unreadable(address, err)
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "tarn"
	}
	// What is sent is UTF-8, whatever the server, the database or the user has chosen.
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	// A statement that was prepared before a table changed would fail after it.
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.DialFunc = dialer().DialContext
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	// Heartbeats have a connection of their own: a first state may keep all others busy. One
	// that is lost is in the pool until the driver has given it up, for longer than a lease.
	beats := config.Copy()
	beats.MaxConns, beats.MinConns, beats.MinIdleConns = 4, 0, 0
	beating, err := pgxpool.NewWithConfig(context.Background(), beats)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	db := &DB{
		pool: pool, opts: opts.withDefaults(),
		token: rand.Text(), holder: fmt.Sprintf("%s (process %d)", host, os.Getpid()),
	}
	db.leases = newLeases(beating, db.token, db.opts.Lease)
	return db, nil
}

// Close closes the connections. No sink may be in use.
func (db *DB) Close() {
	// At the same time: without an answer, the driver waits for 15 seconds.
	var closing sync.WaitGroup
	closing.Go(db.leases.close)
	db.pool.Close()
	closing.Wait()
}

// use records that a table has a sink in this process; it returns false if the table has one
// already. Of two resources with the same name of a table, [DB.prepare] refuses one.
func (db *DB) use(t table) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if slices.ContainsFunc(db.open, func(o table) bool {
		return o.name == t.name && (o.of == t.of || o.of == "" || t.of == "")
	}) {
		return false
	}
	db.open = append(db.open, t)
	return true
}

func (db *DB) unuse(t table) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.open = slices.DeleteFunc(db.open, func(o table) bool { return o.name == t.name && o.of == t.of })
}

// unreadable is why an address cannot be used. The driver's own error repeats the address,
// with everything that the driver does not recognize as a password.
func unreadable(address string, err error) error {
	why := err.Error()
	if i := strings.LastIndex(why, "`: "); i >= 0 {
		why = why[i+len("`: "):]
	}
	return fmt.Errorf("postgres: the address %s cannot be used: %s", Redacted(address), why)
}

// passwords are those of an address that is a list of names with values.
var passwords = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)`)

// Redacted is an address without its password, for people to read.
func Redacted(address string) string {
	if !strings.Contains(address, "://") {
		if !strings.Contains(address, "=") {
			return "(unreadable)"
		}
		return passwords.ReplaceAllString(address, "${1}xxxxx")
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	query := parsed.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			parsed.RawQuery = query.Encode()
		}
	}
	return parsed.Redacted()
}
