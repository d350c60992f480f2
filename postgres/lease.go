package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnedError says that another process feeds a resource. Open succeeds once that process
// has ended, or has not renewed its lease in time.
type OwnedError struct {
	Cluster, Resource string
	// Holder is the other process; empty if it is just writing.
	Holder string
	// Left is how long its lease lasts.
	Left time.Duration
}

func (e *OwnedError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("postgres: %s of cluster %s is just written by another process; this one waits until that has ended", e.Resource, e.Cluster)
	}
	return fmt.Sprintf("postgres: %s of cluster %s is fed by %s; this process waits until that one has ended, or is silent for %v more", e.Resource, e.Cluster, e.Holder, e.Left.Round(time.Second))
}

// errLost says that this process is not the owner any more, errWentBack that the row of its
// position is not the one that it wrote.
var (
	errLost     = errors.New("another process has taken over, because this one did not renew its lease in time, or the row in tarn_feeds was deleted")
	errWentBack = errors.New("the database lacks the last commit: it was restored to an older state, or a table was created again; everything is compared")
)

// Claim makes this process the feeder of resources, named by their tables: of all of them,
// or of none. It fails with an [OwnedError] while another process feeds one of them. A sink
// claims its resource when it is opened; a program that claims first can wait before it
// reads anything.
func (db *DB) Claim(ctx context.Context, tables ...string) error {
	if err := db.migrate(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	tables = slices.Compact(slices.Sorted(slices.Values(tables)))
	err := db.transaction(ctx, func(tx pgx.Tx) error {
		for _, table := range tables {
			if err := db.claim(ctx, tx, table); err != nil {
				return err
			}
		}
		return nil
	})
	if owned, ok := errors.AsType[*OwnedError](err); ok {
		return owned
	}
	if err != nil {
		return fmt.Errorf("postgres: %s cannot be claimed: %w", strings.Join(tables, ", "), err)
	}
	db.leases.start()
	return nil
}

// ClaimResources is [DB.Claim] for Kubernetes resources. A resource whose table has another one,
// because both have the same [TableName], is left out, and its sink says so when it is opened. If
// none is left, it fails with [ErrOtherResource].
func (db *DB) ClaimResources(ctx context.Context, resources ...schema.GroupResource) error {
	if err := db.migrate(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	var tables []string
	var others []error
	err := db.transaction(ctx, func(tx pgx.Tx) error {
		for _, r := range resources {
			t := table{name: TableName(r), of: r.String()}
			_, of, _, err := recordOf(ctx, tx, t.name)
			if err != nil {
				return err
			}
			if of != "" && of != t.of {
				others = append(others, otherResource(t, of))
				continue
			}
			tables = append(tables, t.name)
		}
		return nil
	})
	if err == nil && len(tables) == 0 && len(others) > 0 {
		err = others[0]
	}
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return db.Claim(ctx, tables...)
}

const lockNotAvailable = "55P03"

func (db *DB) claim(ctx context.Context, tx pgx.Tx, table string) error {
	if _, err := tx.Exec(ctx, `INSERT INTO tarn_feeds (cluster, resource) VALUES ($1, $2) ON CONFLICT DO NOTHING`, db.opts.Cluster, table); err != nil {
		return err
	}
	var owner, holder string
	var left float64
	err := tx.QueryRow(ctx, `SELECT owner, holder, greatest(extract(epoch FROM lease_until - clock_timestamp()), 0)::float8
		FROM tarn_feeds WHERE cluster = $1 AND resource = $2 FOR UPDATE NOWAIT`, db.opts.Cluster, table).Scan(&owner, &holder, &left)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == lockNotAvailable {
		return &OwnedError{Cluster: db.opts.Cluster, Resource: table}
	}
	if err != nil {
		return err
	}
	if owner != "" && owner != db.token && left > 0 {
		return &OwnedError{Cluster: db.opts.Cluster, Resource: table, Holder: holder, Left: time.Duration(left * float64(time.Second))}
	}
	_, err = tx.Exec(ctx, `UPDATE tarn_feeds SET owner = $3, holder = $4, lease_until = clock_timestamp() + $5 WHERE cluster = $1 AND resource = $2`,
		db.opts.Cluster, table, db.token, db.holder, db.opts.Lease)
	return err
}

// releaseTimeout is how long a process that ends tries to say so. If it cannot, others wait
// for its lease.
const releaseTimeout = time.Second

// release lets another process feed a resource at once.
func (db *DB) release(table string) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	_, _ = db.pool.Exec(ctx, `UPDATE tarn_feeds SET owner = '', lease_until = 'epoch' WHERE cluster = $1 AND resource = $2 AND owner = $3`,
		db.opts.Cluster, table, db.token)
}

// leases prolongs the leases of one DB.
//
// Every commit prolongs the lease of its resource. A resource in which nothing happens is
// prolonged here, with all others in one statement. It leaves out rows that are locked: a
// transaction of this process is about to prolong them, and nobody else can claim them
// meanwhile.
type leases struct {
	pool  *pgxpool.Pool
	token string
	lease time.Duration

	begin   sync.Once
	claimed atomic.Bool
	running context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

func newLeases(pool *pgxpool.Pool, token string, lease time.Duration) *leases {
	l := &leases{pool: pool, token: token, lease: lease}
	l.running, l.stop = context.WithCancel(context.Background())
	return l
}

func (l *leases) start() {
	l.claimed.Store(true)
	l.begin.Do(func() { l.ended.Go(l.run) })
}

func (l *leases) run() {
	ticker := time.NewTicker(l.lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// It is not waited for: its connection may be lost, and the next one has
			// another. A failure is not reported here: the next commit fails too, and
			// says why.
			l.ended.Go(func() { _ = l.prolong() })
		case <-l.running.Done():
			return
		}
	}
}

func (l *leases) prolong() error {
	ctx, cancel := context.WithTimeout(l.running, l.lease)
	defer cancel()
	_, err := l.pool.Exec(ctx, `UPDATE tarn_feeds f SET lease_until = clock_timestamp() + $2
		FROM (SELECT cluster, resource FROM tarn_feeds WHERE owner = $1 FOR UPDATE SKIP LOCKED) mine
		WHERE f.cluster = mine.cluster AND f.resource = mine.resource AND f.owner = $1`, l.token, l.lease)
	return err
}

// close ends all leases.
func (l *leases) close() {
	l.begin.Do(func() {}) // not any more
	l.stop()
	l.ended.Wait()
	if l.claimed.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		_, _ = l.pool.Exec(ctx, `UPDATE tarn_feeds SET owner = '', lease_until = 'epoch' WHERE owner = $1`, l.token)
	}
	l.pool.Close()
}
