package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
)

// An engine is the target that feed writes to. Each kind has a file of its own, and a line in
// [openEngine].
type engine interface {
	// name is a word for messages, such as "postgres"; place is where it is, without
	// secrets.
	name() string
	place() string
	// claim makes this process the one that feeds the resources. If it fails with an
	// errNotYet, it can be tried again.
	claim(ctx context.Context, resources []mirror.Resource) error
	// sink returns the sink of a resource.
	sink(of kube.Origin, defined []columns.Column) (tarn.Sink[mirror.Object], error)
	close()
}

// errNotYet says why an engine cannot be fed yet: another process feeds it, or it is
// unavailable.
type errNotYet struct{ error }

func (e errNotYet) Unwrap() error { return e.error }

// openEngine returns the engine at an address.
func openEngine(opts *feedOptions) (engine, error) {
	scheme, _, _ := strings.Cut(opts.to, ":")
	switch scheme {
	case "postgres", "postgresql":
		return openPostgres(opts)
	case "nats", "tls":
		return openNATS(opts)
	case "":
		return nil, usagef("say where to write with --to, such as postgres://user@host/database or nats://host:4222")
	}
	return nil, usagef("--to %s: there is no such engine; write postgres://user@host/database or nats://host:4222", redacted(opts.to))
}

// redacted hides everything before the last @ of an address: it may be secret, and a password
// may contain an @ too. It also hides what follows the word password.
func redacted(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = "…@" + rest[i+1:]
	}
	if i := strings.Index(strings.ToLower(rest), "password"); i >= 0 {
		rest = rest[:i] + "…"
	}
	return scheme + rest
}

// feedOptions are the flags of feed.
type feedOptions struct {
	scope
	fleetFlags
	to, clusterName string
	// keep is the value of --history; history and historyAge are parsed from it.
	keep        string
	history     bool
	historyAge  time.Duration
	lastApplied bool
	without     []string
	interval    time.Duration
	metrics     string
	freshWithin time.Duration
	// natsDir and natsListen configure the server that --to nats starts.
	natsDir, natsListen string
}

func (a *app) feedCommand() *cobra.Command {
	var opts feedOptions
	cmd := &cobra.Command{
		Use:   "feed RESOURCES… --to ADDRESS",
		Short: "Write resources to Postgres or NATS, every change once",
		Long: `Write resources to a database or a message broker, every change once and in
order, until Ctrl-C. After a restart the command resumes at its position; where
it misses changes, it records a gap.

postgres://user@host/database: each resource has a table with the columns of
"tarn sql", and labels and the whole object as jsonb. Rows, deletes, gaps and
the position are one transaction. With --history a second table keeps every
state, with --history=24h for a day: you can query any moment of that day. The
password may be in PGPASSWORD or in ~/.pgpass.

` + natsHelp + `

A second process with the same --cluster-name and resources reports who feeds
them, waits, and takes over when the first one ends. Secrets are written only if
they are named, and then with their values; '*' and categories do not include
them.

With --contexts or --kubeconfig-dir it feeds several clusters, each under its
name and independently: an unreachable cluster does not delay the others, and is
fed when it answers.

Resources are named as for "tarn mirror".`,
		Example: `  tarn feed pods deployments.apps -A --to postgres://tarn@db.example/fleet
  tarn feed all nodes -A --to postgres://tarn@db.example/fleet --cluster-name prod-1

  # With every state of the last week, and figures for Prometheus
  tarn feed pods -A --to postgres://tarn@db.example/fleet --history=7d --metrics 127.0.0.1:8278

  # Several clusters
  tarn feed pods -A --contexts east,west --to postgres://tarn@db.example/fleet

  # To a NATS server, and to one that comes with the command
  tarn feed pods -A --to nats://nats.example:4222?history=5
  tarn feed pods -A --to nats --nats-dir ./streams`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.feed(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.scope.bind(cmd)
	opts.fleetFlags.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.to, "to", "", "where to write: postgres://user@host/database, nats://host:4222, or nats to start a server")
	flags.StringVar(&opts.clusterName, "cluster-name", "", "the name of the cluster in all rows, and in the names of buckets; several clusters can share a database or a broker (\"default\" if not given)")
	flags.StringVar(&opts.keep, "history", "", "keep every state of every object too, for ever or for a time: --history=7d")
	flags.Lookup("history").NoOptDefVal = keepAll
	flags.BoolVar(&opts.lastApplied, "with-last-applied", false, "write the annotations in which kubectl apply and others repeat whole objects")
	flags.StringSliceVar(&opts.without, "without", nil, "leave out these fields: spec.template")
	flags.DurationVar(&opts.interval, "interval", 10*time.Second, "how often to print the state of all resources")
	flags.StringVar(&opts.metrics, "metrics", "", "where to serve /metrics, /livez and /readyz by plain HTTP, to everybody who reaches it, such as 127.0.0.1:8278")
	flags.DurationVar(&opts.freshWithin, "fresh-within", 3*time.Minute, "how old the last contact with the server, and changes that wait for the engine, may be for /readyz to succeed")
	flags.StringVar(&opts.natsDir, "nats-dir", "", "where the server of --to nats keeps its streams")
	flags.StringVar(&opts.natsListen, "nats-listen", "127.0.0.1:4222", "where the server of --to nats listens, without passwords")
	return cmd
}

// keepAll is what --history means without a time.
const keepAll = "all"

// checkHistory parses --history. A time that follows it without = is an argument.
func (o *feedOptions) checkHistory(args []string) (err error) {
	o.history, o.historyAge = o.keep != "", 0
	if o.keep == keepAll {
		for _, arg := range args {
			if _, err := parseSpan(arg); err == nil {
				return usagef("%s is not a resource; for a history of that time write --history=%s", arg, arg)
			}
		}
	}
	if !o.history || o.keep == keepAll {
		return nil
	}
	if o.historyAge, err = parseSpan(o.keep); err != nil || o.historyAge <= 0 {
		return usagef("--history=%s: write a time such as 24h or 7d, or --history alone to keep every state for ever", o.keep)
	}
	return nil
}

func (o *feedOptions) check() error {
	if o.interval <= 0 {
		return usagef("--interval is a time such as 10s, not %v", o.interval)
	}
	if o.freshWithin <= 0 {
		return usagef("--fresh-within is a time such as 3m, not %v", o.freshWithin)
	}
	if o.several() && o.clusterName != "" {
		return usagef("--cluster-name names one cluster: leave it out with --contexts and --kubeconfig-dir, where each has a name")
	}
	if o.clusterName == "" {
		o.clusterName = "default"
	}
	if o.metrics != "" {
		if _, err := checkAddress("--metrics", o.metrics); err != nil {
			return err
		}
	}
	return o.scope.check()
}

func (a *app) feed(parent context.Context, args []string, opts *feedOptions) error {
	if err := opts.check(); err != nil {
		return err
	}
	if err := opts.checkHistory(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if opts.several() {
		return a.feedFleet(ctx, cancel, args, opts)
	}
	to, err := openEngine(opts)
	if err != nil {
		return err
	}
	defer to.close()
	at, err := a.cluster(ctx)
	if err != nil {
		return err
	}
	figures, err := a.serveFeedFigures(ctx, cancel, opts)
	if err != nil {
		return err
	}
	defer func() { cancel(nil); figures.wait() }()
	f := feeder{app: a, args: args, opts: opts, out: a.out, figures: figures}
	if err := f.run(ctx, at, to); parent.Err() == nil {
		return err
	}
	return nil
}

// feeder writes the resources of one cluster to an engine.
type feeder struct {
	app     *app
	args    []string
	opts    *feedOptions
	out     io.Writer
	figures feedFigures
	// cluster is the name of the cluster, empty if there is only one.
	cluster string
}

// run feeds the engine until ctx ends, or there is nothing to feed.
func (f *feeder) run(parent context.Context, at cluster, to engine) error {
	wanted, named, err := feedable(at.catalog, f.args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if err := f.awaitClaim(ctx, to, wanted); err != nil {
		return err
	}
	begun := time.Now()
	m, err := f.app.startMirrorOf(ctx, cancel, at, wanted, &f.opts.scope, mirror.Options{
		ShowSecrets: named, Feed: &mirror.Feed{Sink: to.sink, LastApplied: f.opts.lastApplied, Without: f.opts.without},
	})
	if err != nil {
		return err
	}
	defer f.figures.add(m, f.cluster)()
	fmt.Fprintf(f.out, "Feeding %s.\n", to.place())
	(&mirrorLines{out: f.out, mirror: m, begun: begun, interval: f.opts.interval, engine: to.name()}).run(ctx)
	<-m.Done()
	return context.Cause(ctx)
}

// feedable resolves arguments to resources, without Secrets unless they are named.
func feedable(catalog *mirror.Catalog, args []string) (wanted []mirror.Resource, secretsNamed bool, err error) {
	all, err := resources(catalog, args)
	if err != nil {
		return nil, false, err
	}
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if found, err := catalog.Find(name); err == nil && found.Secret() {
				secretsNamed = true
			}
		}
	}
	if !secretsNamed {
		all = slices.DeleteFunc(all, mirror.Resource.Secret)
	}
	return all, secretsNamed, nil
}

// claimEvery is how often feed retries an engine that another process feeds.
const claimEvery = time.Second

// awaitClaim waits until this process may feed the engine, and prints what it waits for.
func (f *feeder) awaitClaim(ctx context.Context, to engine, wanted []mirror.Resource) error {
	said := ""
	ticker := time.NewTicker(claimEvery)
	defer ticker.Stop()
	for {
		err := to.claim(ctx, wanted)
		later, wait := err.(errNotYet) //nolint:errorlint // it is the outermost one
		if !wait || ctx.Err() != nil {
			return err
		}
		f.figures.waits(f.cluster, oneLine(later))
		if text := later.Error(); summary(text) != said {
			said = summary(text)
			fmt.Fprintf(f.out, "%s %s\n", stamp(time.Now()), oneLine(later))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// summary is a message up to its first semicolon. The rest says how long it takes.
func summary(text string) string {
	head, _, _ := strings.Cut(text, ";")
	return head
}
