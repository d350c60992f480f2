package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
)

// keeping holds the flags by which a mirror is kept in a directory.
//
// Memory always stays in front of the disk: everything that uses a mirror, such as its view,
// its page and its comparison, reads from memory.
type keeping struct {
	dir, keyFile         string
	secrets, lastApplied bool
	without              []string
	// history is the value of the flag, past the parsed value.
	history string
	past    sqlite.History
}

func (k *keeping) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&k.dir, "to", "", "keep the copy in this directory too: it survives a restart and answers SQL")
	bindKey(cmd, &k.keyFile)
	flags.BoolVar(&k.secrets, "with-secrets", false, "with --to, write Secrets too")
	flags.BoolVar(&k.lastApplied, "with-last-applied", false, "with --to, keep the annotations in which kubectl apply and others repeat whole objects")
	flags.StringSliceVar(&k.without, "without", nil, "with --to, leave out these fields: spec.template")
	flags.StringVar(&k.history, "history", "", "with --to, keep past states too, for this long or up to this size of the file: 24h,20GB; thin=24h/1m keeps one state a minute after a day")
	_ = cmd.MarkFlagDirname("to")
	_ = cmd.RegisterFlagCompletionFunc("history", choices("24h,20GB", "7d,20GB,thin=24h/1m"))
}

func (k *keeping) check() (err error) {
	if k.dir == "" && k.history != "" {
		return usagef("--history is kept in a directory: name it with --to")
	}
	if k.past, err = parseHistory(k.history); err != nil {
		return err
	}
	if k.dir == "" && (k.keyFile != "" || k.secrets || k.lastApplied || len(k.without) > 0) {
		return usagef("--key-file, --with-secrets, --with-last-applied and --without are about a directory: name it with --to")
	}
	return nil
}

// open opens the directory; without one it returns nil. The returned function closes the
// directory after the mirror, and reports what is not on disk.
func (a *app) open(k *keeping) (*mirror.Disk, func() error, error) {
	if k.dir == "" {
		return nil, func() error { return nil }, nil
	}
	key, err := a.key(k.keyFile)
	if err != nil {
		return nil, nil, err
	}
	db, err := sqlite.Open(k.dir, sqlite.Options{Key: key, History: k.past, Logger: a.logger})
	if err != nil {
		return nil, nil, explainDirectory("--to", err)
	}
	disk := &mirror.Disk{DB: db, Secrets: k.secrets, LastApplied: k.lastApplied, Without: k.without}
	return disk, func() error {
		if err := db.Close(); err != nil {
			return explainDirectory("--to", fmt.Errorf("not all was written: %w", err))
		}
		return nil
	}, nil
}

// clusterOr returns the cluster or, if the cluster does not answer, what the directory knows
// about it: the copy on disk can still be served.
func (a *app) clusterOr(ctx context.Context, k *keeping) (cluster, error) {
	at, err := a.cluster(ctx)
	if err == nil || k.dir == "" || at.cfg == nil || ctx.Err() != nil {
		return at, err
	}
	at.catalog, err = a.rememberedCatalog(ctx, k, err)
	return at, err
}

// rememberedCatalog returns the resources that a directory knows for a server that failed to
// list them. It returns that failure if there is no such directory.
func (a *app) rememberedCatalog(ctx context.Context, k *keeping, failed error) (*mirror.Catalog, error) {
	if k.dir == "" {
		return nil, failed
	}
	key, err := a.key(k.keyFile)
	if err != nil {
		return nil, failed
	}
	directory, err := mirror.OpenDirectory(ctx, k.dir, key)
	if err != nil {
		return nil, failed
	}
	defer directory.Close()
	a.logger.Warn("the server does not say what it has; the directory remembers", "error", brief(failed))
	return directory.Catalog(), nil
}
