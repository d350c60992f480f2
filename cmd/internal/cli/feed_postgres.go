package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
	"github.com/tarnproject/tarn/postgres"
)

// postgresEngine feeds a PostgreSQL database.
type postgresEngine struct {
	db      *postgres.DB
	address string
	applied []postgres.Option
}

func openPostgres(opts *feedOptions) (engine, error) {
	db, err := postgres.Connect(opts.to, postgres.Options{Cluster: opts.clusterName, History: opts.history, HistoryAge: opts.historyAge})
	if err != nil {
		return nil, usagef("--to: %v; write postgres://user@host/database", err)
	}
	e := &postgresEngine{db: db, address: postgres.Redacted(opts.to)}
	if opts.lastApplied {
		e.applied = append(e.applied, postgres.WithLastApplied())
	}
	return e, nil
}

func (e *postgresEngine) name() string { return "postgres" }

func (e *postgresEngine) place() string { return e.address }

func (e *postgresEngine) claim(ctx context.Context, resources []mirror.Resource) error {
	all := make([]schema.GroupResource, len(resources))
	for i, r := range resources {
		all[i] = r.GVR.GroupResource()
	}
	err := e.db.ClaimResources(ctx, all...)
	if _, owned := errors.AsType[*postgres.OwnedError](err); owned {
		return errNotYet{err}
	}
	answer, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrUnusable), errors.Is(err, postgres.ErrOtherResource):
		return fmt.Errorf("--to %s: %w", e.address, err)
	case answered && comesBack(answer.Code):
		return errNotYet{fmt.Errorf("%s cannot be fed yet: %s (%s)", e.address, answer.Message, answer.Code)}
	case answered:
		return fmt.Errorf("--to %s: the server refuses: %s (%s); check user, password, database and rights", e.address, answer.Message, answer.Code)
	}
	return errNotYet{fmt.Errorf("%s does not answer: %w", e.address, err)}
}

// comesBack reports whether a server that answers with this code may accept the claim later:
// it is about to start or to stop, has no room or connection left, ended a transaction in
// favour of another one, or is a standby that may become the primary.
func comesBack(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "40", "53", "55", "57", "58":
		return true
	}
	return code == "25006"
}

func (e *postgresEngine) sink(of kube.Origin, defined []columns.Column) (tarn.Sink[mirror.Object], error) {
	// The command has left out Secrets that nobody named.
	opts := append([]postgres.Option{postgres.WithSecrets(), postgres.WithColumns(defined...)}, e.applied...)
	return postgres.NewObjectSink[mirror.Object](e.db, of, opts...)
}

func (e *postgresEngine) close() { e.db.Close() }
