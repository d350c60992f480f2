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
		Short: "Keep a live copy of resources, and show its state",
		Long: `Keep a live copy of resources in memory, and show its state until Ctrl-C: first
the progress of the copy, then for each resource the number of objects, the rate
of changes, the freshness, and the last error.

With --to the copy is kept in a directory too. After a restart the command has
this content at once, says how old it is, and continues from there without
reading everything again. While it runs and afterwards, get, watch, query, sql
and verify read the directory with --from. Secrets are not written without
--with-secrets, and with it they are written with their values; --key-file
encrypts everything, and then there are no tables for SQL.

With --history the directory keeps past states too: for a time, up to a size of
the file, or both, whichever comes first. Then get, query and sql answer --as-of
a moment, "tarn history" shows the states of an object, and "tarn replay" serves
a past hour. Without --history an earlier history is removed.

With --contexts or --kubeconfig-dir it copies several clusters into one place:
the name of the cluster is the first part of keys, and a column of tables and of
SQL. An unreachable cluster does not affect the others. If a file is added to
the directory or removed, so is its cluster.

Resources are named as for "tarn get", any number of them; "all" is kubectl's
category of that name, and '*' means all resources of the server.`,
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

// startMirror starts a mirror of the resources that a command line names; options say how
// objects are kept. It gives up, with the cause, if none of them may be read.
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

// startMirrorOf starts a mirror of known resources.
func (a *app) startMirrorOf(ctx context.Context, giveUp context.CancelCauseFunc, at cluster, wanted []mirror.Resource, s *scope, options mirror.Options) (*mirror.Mirror, error) {
	if err := at.checkPast(ctx, wanted); err != nil {
		return nil, err
	}
	if at.cfg != nil {
		at.cfg.Timeout = 0 // a timeout is for requests that end by themselves
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
		if table, ok := m.Table(name); ok && at.fleet == nil { // if one of several clusters denies it, another may grant it
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
