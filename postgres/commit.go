package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tarnproject/tarn"
)

// Commit writes a batch in one transaction. Objects that Postgres refuses are quarantined,
// and returned as [tarn.ObjectErrors].
func (s *Sink[T]) Commit(ctx context.Context, b tarn.Batch[T]) error {
	if s.lost {
		if err := s.reclaim(ctx, b); err != nil {
			return err
		}
	}
	if s.held != nil {
		b = b.After(s.held)
	}
	if !b.Again || s.batch == "" {
		s.batch = rand.Text()
	}
	st := newStaging(s, b)
	for {
		err := s.write(ctx, st, b)
		s.noteAttempt(err)
		if errors.Is(err, errLost) || errors.Is(err, errWentBack) || isMissing(err) {
			s.lost = true
		}
		if isRefusal(err) {
			var found bool
			if found, err = s.findRefused(ctx, st, err); found {
				continue // without them
			}
		}
		if err != nil {
			return fmt.Errorf("postgres: %s of cluster %s: %w", s.table.name, s.db.opts.Cluster, err)
		}
		return st.problems()
	}
}

// noteAttempt records which batches the row of the position may have.
func (s *Sink[T]) noteAttempt(err error) {
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case err == nil:
		s.expected, s.unconfirmed, s.held = s.batch, nil, nil
	case !unconnected && !pgconn.SafeToRetry(err) && !slices.Contains(s.unconfirmed, s.batch):
		s.unconfirmed = append(s.unconfirmed, s.batch)
	}
}

// isMissing says that a table or a column is not the same as when the sink was opened:
// Postgres did not understand a statement, and not because a right is missing.
func isMissing(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(refused.Code, "42") && refused.Code != insufficientPrivilege
}

const insufficientPrivilege = "42501"

// reclaim makes this process the feeder again, after another one was it, or the tables were
// changed or put back. They may have anything then, so the whole content is compared:
// tarn.ErrSinkEmpty asks for it. A copy that has not reached the position of the other one
// must not write.
func (s *Sink[T]) reclaim(ctx context.Context, b tarn.Batch[T]) error {
	kept, err := s.claim(ctx)
	if err != nil {
		return err
	}
	var held tarn.Positions
	for _, p := range kept.Positions {
		held.Move(p)
	}
	for _, p := range b.Positions {
		for _, h := range held.All() {
			if h.Section == p.Section && h.Epoch == p.Epoch && p.Version.OlderThan(h.Version) {
				return fmt.Errorf("postgres: %s: another process came to version %s, and this copy is at %s: %w", s.table.name, h.Version, p.Version, tarn.ErrSinkEmpty)
			}
		}
	}
	if !b.Whole {
		return fmt.Errorf("postgres: %s: %w", s.table.name, tarn.ErrSinkEmpty)
	}
	s.lost, s.held = false, append([]tarn.Position{}, kept.Positions...)
	return nil
}

// write is one transaction.
func (s *Sink[T]) write(ctx context.Context, st *staging[T], b tarn.Batch[T]) error {
	positions, err := encodePositions(b.Positions)
	if err != nil {
		return err
	}
	if len(b.Changes) == 0 && len(b.Gaps) == 0 && !b.Whole && !s.retains() && len(s.unconfirmed) == 0 {
		if err := s.move(ctx, s.db.pool, b, positions); !errors.Is(err, errLost) {
			return err
		} // else a transaction says why
	}
	changes := len(b.Changes) > 0 || b.Whole
	return s.db.transaction(ctx, func(tx pgx.Tx) error {
		if changes { // before the lock: see Sink
			if err := st.copy(ctx, tx); err != nil {
				return err
			}
		}
		done, err := s.lock(ctx, tx, b)
		if err != nil || done {
			return err
		}
		if changes {
			if err := s.merge(ctx, tx, b); err != nil {
				return err
			}
		}
		if err := s.noteGaps(ctx, tx, b.Gaps, b.Positions); err != nil {
			return err
		}
		if s.retains() {
			if err := s.retain(ctx, tx, b); err != nil {
				return err
			}
		}
		return s.move(ctx, tx, b, positions)
	})
}

// lock locks the row of the position. It says that there is nothing to do if the same batch
// is committed already, and fails if the row is not the one that this batch follows.
func (s *Sink[T]) lock(ctx context.Context, tx pgx.Tx, b tarn.Batch[T]) (done bool, err error) {
	var batch string
	err = tx.QueryRow(ctx, `SELECT batch FROM tarn_feeds WHERE cluster = $1 AND resource = $2 AND owner = $3 FOR UPDATE`,
		s.db.opts.Cluster, s.table.name, s.db.token).Scan(&batch)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, errLost
	case err != nil:
		return false, err
	case b.Again && batch == s.batch:
		return true, nil
	case !slices.Contains(s.follows(), batch):
		return false, errWentBack
	}
	// It is locked: no earlier attempt can still be committed.
	s.expected, s.unconfirmed = batch, nil
	return false, nil
}

// follows returns the batches that this one may follow: one of them must be in the row.
func (s *Sink[T]) follows() []string { return append([]string{s.expected}, s.unconfirmed...) }

// execer is a transaction or a pool.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// move moves the position. It must hit the owner's row, after a batch that this sink knows:
// an update that a lost connection left behind on the server does nothing then.
func (s *Sink[T]) move(ctx context.Context, on execer, b tarn.Batch[T], positions string) error {
	var heard *time.Time
	if !b.LastContact.IsZero() {
		heard = &b.LastContact
	}
	moved, err := on.Exec(ctx, `UPDATE tarn_feeds SET positions = $4, batch = $5, heard = coalesce($6, heard), committed = clock_timestamp(),
			lease_until = clock_timestamp() + $7
		WHERE cluster = $1 AND resource = $2 AND owner = $3 AND (batch = $5 OR batch = ANY ($8))`,
		s.db.opts.Cluster, s.table.name, s.db.token, positions, s.batch, heard, s.db.opts.Lease, s.follows())
	if err == nil && moved.RowsAffected() != 1 {
		err = errLost
	}
	s.db.heed(err)
	return err
}

// noteGaps writes gaps. One that is there already is not written twice.
func (s *Sink[T]) noteGaps(ctx context.Context, tx pgx.Tx, gaps []tarn.Gap, at []tarn.Position) error {
	return noteGaps(ctx, tx, label{s.db, s.table.name}, gaps, at)
}

func noteGaps(ctx context.Context, tx pgx.Tx, of label, gaps []tarn.Gap, at []tarn.Position) error {
	for _, g := range gaps {
		epoch := ""
		for _, p := range at {
			if p.Section == g.Section {
				epoch = p.Epoch
			}
		}
		if _, err := tx.Exec(ctx, `INSERT INTO tarn_gaps (cluster, resource, section, epoch, from_version, to_version, cause)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			of.db.opts.Cluster, of.table, g.Section, epoch, string(g.From), string(g.To), string(g.Cause)); err != nil {
			return err
		}
	}
	return nil
}
