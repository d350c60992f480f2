package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/memory/query"
)

// queryOptions are the flags of query.
type queryOptions struct {
	scope
	output
	from
	asOf
	where, sort, indexes []string
	limit                int
	after                string
	count, explain       bool
	timeout              time.Duration
}

func (a *app) queryCommand() *cobra.Command {
	var opts queryOptions
	cmd := &cobra.Command{
		Use:   "query RESOURCES…",
		Short: "Find objects by any of their fields, sorted and in pages",
		Long: `Copy resources, and query the copy: by any fields, sorted by any fields, in
pages. A server selects by labels and by few fields, and does not sort. If that
is enough, "tarn get" is faster.

Selectors are in Kubernetes' syntax, and an object must match all of them:

  -l 'app=web,tier in (front,back),!old'
  --where 'status.phase!=Running,spec.nodeName in (node-1,node-2)'
  --where 'spec.containers[*].image=nginx:1,!spec.nodeName,spec.replicas>3'

--sort-by takes several paths; a - before a path sorts from high to low. Objects
that are equal in all of them are sorted by namespace and name.

With --limit a page ends with a token for the next, on standard error and as
metadata.continue of json and yaml. The token is valid only for the same query.

The table shows the fields of the query; -o wide adds owner and version, -o
custom-columns shows the columns that you name. --explain shows the query plan
instead of the objects, and --index declares an index for the query, of several
fields with commas between them.`,
		Example: `  # What does not run, oldest first
  tarn query pods -A --where status.phase!=Running --sort-by metadata.creationTimestamp

  # The five pods that restarted most
  tarn query pods -A --sort-by '-status.containerStatuses[0].restartCount' --limit 5

  # How many there are
  tarn query pods -A -l app=web --where 'spec.nodeName in (node-1,node-2)' --count

  # Page by page
  tarn query pods -A --limit 100
  tarn query pods -A --limit 100 --continue "$TOKEN"

  # What was not running ten minutes ago
  tarn query pods -A --from replica --as-of 10m --where status.phase!=Running

  # What an index would do for it
  tarn query pods -A --where spec.nodeName=node-1 --index spec.nodeName --explain`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.query(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.scope.bind(cmd)
	opts.output.bind(cmd)
	opts.from.bind(cmd)
	opts.asOf.bind(cmd)
	flags := cmd.Flags()
	flags.Lookup("field-selector").Usage = "the same as --where"
	flags.StringArrayVar(&opts.where, "where", nil, "only objects with these fields: spec.nodeName=node-1,status.phase!=Running; may be repeated")
	flags.StringArrayVar(&opts.sort, "sort-by", nil, "fields to sort by, with a - from high to low: -spec.priority,metadata.name")
	flags.IntVar(&opts.limit, "limit", 0, "show at most so many of each resource; 0 for all")
	flags.StringVar(&opts.after, "continue", "", "continue after a page, with the token at its end")
	flags.BoolVar(&opts.count, "count", false, "print the number of objects instead")
	flags.BoolVar(&opts.explain, "explain", false, "print the query plan instead")
	flags.StringArrayVar(&opts.indexes, "index", nil, "index a field first; may be repeated")
	flags.DurationVar(&opts.timeout, "timeout", 10*time.Minute, "how long to try")
	return cmd
}

// query makes a copy, and runs the query once it is complete.
func (a *app) query(parent context.Context, args []string, opts *queryOptions) error {
	asked, err := opts.question()
	if err != nil {
		return err
	}
	if err := opts.asOf.check(opts.dir); err != nil {
		return err
	}
	opts.from.moment = opts.asOf.moment
	late := fmt.Errorf("not done within %s; --timeout allows more", opts.timeout)
	timed, stop := context.WithTimeoutCause(parent, opts.timeout, late)
	defer stop()
	ctx, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	at, err := a.place(ctx, &opts.from)
	if err != nil {
		return err
	}
	defer at.close()
	m, err := a.startMirror(ctx, cancel, at, args, opts.copied(), mirror.Options{
		ShowSecrets: opts.showSecrets, KeepManagedFields: opts.showManagedFields || asked.about("metadata.managedFields"),
	})
	if err != nil {
		return err
	}
	defer func() {
		// client-go logs an error for each interrupted request, such as the one by which a
		// mirror learns how many objects there will be.
		a.logging.sink.redirect(io.Discard)
		cancel(nil)
		<-m.Done()
	}()
	defer a.printAge(parent, at, tablesOf(m))
	if opts.after != "" && len(m.Tables()) > 1 {
		return usagef("--continue is for one resource, and %d are named", len(m.Tables()))
	}
	var answers []*answer
	var failed []error
	for _, table := range m.Tables() {
		found, err := a.ask(ctx, table, asked, m.Fleet(), opts)
		usage := (*usageError)(nil)
		switch {
		case ctx.Err() != nil:
			return unfinished(ctx, table)
		case errors.As(err, &usage):
			return err
		case err != nil:
			failed = append(failed, err)
		default:
			answers = append(answers, found)
		}
	}
	if len(answers) > 0 {
		failed = append(failed, a.printAnswers(answers, opts))
	}
	return errors.Join(failed...)
}

func tablesOf(m *mirror.Mirror) (all []mirror.Resource) {
	for _, t := range m.Tables() {
		all = append(all, t.Resource())
	}
	return all
}

// unfinished says why a copy did not become complete.
func unfinished(ctx context.Context, table *mirror.Table) error {
	last := table.Replica().Health().Err
	if last != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s; %w", brief(last), context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// copied says what to copy from the server. It may leave out objects with other labels: the
// query would not find them. But a plan is about all objects.
func (o *queryOptions) copied() *scope {
	s := &scope{allNamespaces: o.allNamespaces, labels: o.labels}
	if o.explain {
		s.labels = ""
	}
	return s
}

// answer is the result of a query in one table.
type answer struct {
	resource mirror.Resource
	question
	query.Page[mirror.Object]
	// namespace is where the query searched, empty if everywhere.
	namespace string
	count     int
	plan      query.Plan
	// clusters says that keys begin with the names of clusters.
	clusters bool
	// at is the moment of the past that the answer is about, zero for now.
	at time.Time
}

// ask runs the query on a table once the table is complete. It reports errors of the query
// that it can find earlier at once.
func (a *app) ask(ctx context.Context, table *mirror.Table, asked question, clusters bool, opts *queryOptions) (*answer, error) {
	found := &answer{resource: table.Resource(), question: asked, clusters: clusters, at: opts.asOf.moment.Time}
	for _, namespace := range table.Namespaces() {
		found.namespace = namespace // there is at most one
	}
	under := found.namespace
	if clusters {
		under = "" // keys begin with clusters, and the copy has no other namespace
	}
	asking, err := asked.of(found.resource, under, opts.after)
	if err != nil {
		return nil, err
	}
	found.query = asking
	if err := untilSynced(ctx, table); err != nil {
		return nil, err
	}
	if err := asked.addIndexes(table.Store()); err != nil {
		return nil, err
	}
	state := table.Store().Snapshot()
	defer state.Close()
	if err := a.checkFields(state, found); err != nil {
		return nil, err
	}
	switch {
	case opts.explain:
		if found.plan, err = state.Explain(asking); err == nil {
			found.count, err = state.Count(asking)
		}
	case opts.count:
		found.count, err = state.Count(asking)
	default:
		found.Page, err = state.Select(asking)
	}
	if err != nil {
		return nil, wrongQuery(err)
	}
	return found, nil
}
