package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tarnproject/tarn"
)

// isRefusal says whether Postgres refused data: a text that jsonb does not take, or one
// that is beyond a limit.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(refused.Code, "22") || strings.HasPrefix(refused.Code, "54"))
}

// errTried ends a transaction that was only a trial.
var errTried = errors.New("tried")

// findRefused finds the objects that Postgres refuses, by writing ever smaller parts of the
// batch, with the statements of a commit, and taking them back: a value may be refused by the
// temporary table, or only by an index of the table or of the history. It says whether it has
// found any.
func (s *Sink[T]) findRefused(ctx context.Context, st *staging[T], cause error) (bool, error) {
	before := len(st.refused)
	if err := s.tryRange(ctx, st, 0, len(st.batch.Changes)); err != nil {
		return false, err
	}
	if len(st.refused) == before {
		return false, cause
	}
	return true, nil
}

func (s *Sink[T]) tryRange(ctx context.Context, st *staging[T], from, to int) error {
	if from == to {
		return nil
	}
	err := s.db.transaction(ctx, func(tx pgx.Tx) error {
		if err := st.copyRange(ctx, tx, from, to); err != nil {
			return err
		}
		if err := s.mergeStates(ctx, tx, false); err != nil {
			return err
		}
		return errTried
	})
	switch {
	case errors.Is(err, errTried):
		return nil
	case !isRefusal(err):
		return err
	case to-from == 1:
		refused, _ := errors.AsType[*pgconn.PgError](err)
		st.refused[from] = fmt.Errorf("refused by Postgres: %s", refused.Message)
		return nil
	}
	middle := (from + to) / 2
	if err := s.tryRange(ctx, st, from, middle); err != nil {
		return err
	}
	return s.tryRange(ctx, st, middle, to)
}

// isZero says whether a delete came without its object.
func isZero[T any](object T) bool { return reflect.ValueOf(&object).Elem().IsZero() }

var _ tarn.Restorer[any] = (*Sink[any])(nil)
var _ tarn.SinkLister = (*Sink[any])(nil)
