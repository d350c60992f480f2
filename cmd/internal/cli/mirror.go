package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// mirrorOptions are the flags of mirror.
type mirrorOptions struct {
	copying
	interval time.Duration
}

func (a *app) mirrorCommand() *cobra.Command {
	var opts mirrorOptions
	cmd := &cobra.Command{
		Use:   "mirror RESOURCES…",
		Short: "Keep a live copy of resources, and show how it is doing",
		Long: `Keep a live copy of resources in memory, and show how it is doing until Ctrl-C:
first how far the copy has come, then for each resource how many objects there
are, how much happens, how fresh it is, and what went wrong last.

With --to the copy is kept in a directory too. When the command is started
again, it has at once what it knew, says how old that is, and continues from
there without reading everything again. Meanwhile and afterwards get, watch,
query, sql and verify read the directory with --from. Secrets are not written
without --with-secrets, and with it they are written with their values;
--key-file encrypts everything, and then there are no tables for SQL.

With --history the directory keeps past states too: for a time, up to a size of
the file, or both, whichever comes first. Then get, query and sql answer --as-of
a moment, "tarn history" shows what happened to an object, and "tarn replay"
serves a past hour. Without --history what was kept before is removed.

With --contexts or --kubeconfig-dir it copies several clusters into one place:
the name of the cluster is the first part of keys, and a column of tables and of
SQL. A cluster that is away does not affect the others. Files in the directory
may come and go, and their clusters with them.

Resources are named as for "tarn get", any number of them; "all" is kubectl's
category of that name, and '*' is everything that the server has.`,
		Example: `  tarn mirror pods
  tarn mirror pods deployments services -A
  tarn mirror all -n shop

  # Everything there is
  tarn mirror '*' -A

  # Compare with the server all the time, and repair what differs
  tarn mirror all -A --verify=10m

  # On disk too, for SQL and to be there at once the next time
  tarn mirror all nodes -A --to replica

  # Several clusters, in one directory
  tarn mirror pods nodes -A --contexts east,west --to replica
  tarn sql --from replica 'SELECT cluster, count(*) FROM pods GROUP BY cluster'

  # With the past day, in 20 GB at most; with a week, thinned out after a day
  tarn mirror all nodes -A --to replica --history 24h,20GB
  tarn mirror all nodes -A --to replica --history 7d,20GB,thin=24h/1m`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.mirror(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.copying.bind(cmd)
	cmd.Flags().DurationVar(&opts.interval, "interval", 10*time.Second, "how often to print when not in a terminal")
	return cmd
}

func (a *app) mirror(parent context.Context, args []string, opts *mirrorOptions) (failed error) {
	if opts.interval <= 0 {
		return usagef("--interval is a time such as 10s, not %v", opts.interval)
	}
	if err := opts.copying.check(); err != nil {
		return err
	}
	at, err := a.origin(parent, &opts.copying)
	if err != nil {
		return err
	}
	disk, closeDisk, err := a.open(&opts.keeping)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, closeDisk()) }()
	live, leave, err := a.screen()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	begun := time.Now()
	m, err := a.startMirror(ctx, cancel, at, args, &opts.scope, mirror.Options{Disk: disk, ShowSecrets: opts.keeping.secrets, Verify: opts.period})
	if err != nil {
		return err
	}
	defer func() { cancel(nil); <-m.Done() }() // before the directory is closed
	if live != nil {
		(&mirrorView{live: live, mirror: m, begun: begun}).run(ctx)
	} else {
		(&mirrorLines{out: a.out, mirror: m, begun: begun, interval: opts.interval}).run(ctx)
	}
	<-m.Done()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// startMirror starts a mirror of what a command line names, with what options say
// of how objects are kept. It is given up, with its cause, if nothing of it may be
// read.
func (a *app) startMirror(ctx context.Context, giveUp context.CancelCauseFunc, at cluster, args []string, s *scope, options mirror.Options) (*mirror.Mirror, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	wanted, err := resources(at.catalog, args)
	if err != nil {
		return nil, at.notInDirectory(err)
	}
	return a.startMirrorOf(ctx, giveUp, at, wanted, s, options)
}

// startMirrorOf starts a mirror of resources that are known.
func (a *app) startMirrorOf(ctx context.Context, giveUp context.CancelCauseFunc, at cluster, wanted []mirror.Resource, s *scope, options mirror.Options) (*mirror.Mirror, error) {
	if err := at.checkPast(ctx, wanted); err != nil {
		return nil, err
	}
	if at.cfg != nil {
		at.cfg.Timeout = 0 // that is for requests that come to an end
	}
	denials := newDeniedResources(len(wanted), giveUp)
	var m *mirror.Mirror
	var err error
	started := make(chan struct{})
	options.Namespaces, options.LabelSelector, options.FieldSelector = s.namespaces(at.namespace), s.labels, s.fields
	options.Logger, options.AppliedCopies = a.logger, a.appliedCopies()
	options.OnError = func(name string, err error) {
		<-started
		a.logger.Info("copy failed", "resource", name, "error", err)
		if table, ok := m.Table(name); ok && at.fleet == nil { // what one of several denies, another may grant
			denials.add(name, table.Replica().Synced(), err)
		}
	}
	m, err = at.start(ctx, wanted, options)
	close(started)
	if err != nil {
		return nil, fmt.Errorf("the mirror cannot be started: %w", err)
	}
	return m, nil
}
