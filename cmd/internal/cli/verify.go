package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/verify"
)

// Exit codes of verify, the same as those of diff and cmp.
const (
	exitDifferent = 1
	exitUnknown   = 2
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	scope
	from
	fleetFlags
	format    string
	chunkSize int64
	timeout   time.Duration
}

func (a *app) verifyCommand() *cobra.Command {
	var opts verifyOptions
	cmd := &cobra.Command{
		Use:   "verify RESOURCES…",
		Short: "Check that a copy equals the server",
		Long: `Make a live copy of resources, and check that it equals the server's state at
exactly the version of the copy: every object is compared by its content. For
each resource it prints a digest of that content, which is the same in every
copy at that version, and then the objects that differ, with the names of the
fields; values are not shown. Values of Secrets are not copied, and therefore
not compared.

With --from it compares the content of a replica directory with the server, at
the version of the directory.

With --contexts or --kubeconfig-dir several clusters are compared, one after the
other. It names a cluster that does not answer, and compares the others.

Resources are named as for "tarn get". "tarn mirror --verify=10m" compares
continuously, and repairs differences.

Exit codes: 0 equal, 1 different, 2 it cannot tell.`,
		Example: `  tarn verify pods -A
  tarn verify pods,deployments,services -n shop
  tarn verify pods -A --contexts east,west
  tarn verify all -A -o json && echo equal`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.verify(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.scope.bind(cmd)
	opts.from.bind(cmd)
	opts.fleetFlags.bind(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&opts.format, "output", "o", "", "how to print: a table, or json")
	flags.Int64Var(&opts.chunkSize, "chunk-size", tarn.DefaultPageSize, "how many objects to ask the server for at once")
	flags.DurationVar(&opts.timeout, "timeout", 10*time.Minute, "how long to try")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) verify(parent context.Context, args []string, opts *verifyOptions) error {
	switch {
	case opts.format != "" && opts.format != "json":
		return usagef("-o cannot be %q: leave it out for a table, or say json", opts.format)
	case opts.chunkSize < 1 || opts.timeout <= 0:
		return usagef("--chunk-size and --timeout must be more than 0, such as 500 and 10m")
	}
	late := fmt.Errorf("not done within %s; --timeout allows more", opts.timeout)
	timed, stop := context.WithTimeoutCause(parent, opts.timeout, late)
	defer stop()
	var all verified
	var err error
	if opts.fleetFlags.several() {
		err = a.verifyFleet(timed, args, opts, &all)
	} else {
		var at cluster
		if at, err = a.compared(timed, &opts.from); err == nil {
			defer at.close()
			err = a.verifyCluster(timed, at, args, opts, "", &all)
		}
	}
	switch {
	case parent.Err() != nil:
		return context.Cause(parent)
	case err != nil:
		return a.unknownResult(parent, err)
	}
	if err := all.print(a.out, opts.format); err != nil {
		return a.unknownResult(parent, err)
	}
	switch all.Verdict {
	case verify.Different:
		return &exitError{code: exitDifferent}
	case verify.Unknown:
		return &exitError{code: exitUnknown}
	}
	return nil
}

// verifyCluster compares the resources of one cluster, which is called name if there are
// several.
func (a *app) verifyCluster(parent context.Context, at cluster, args []string, opts *verifyOptions, name string, all *verified) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	m, err := a.startMirror(ctx, cancel, at, args, &opts.scope, mirror.Options{})
	if err != nil {
		return err
	}
	for _, table := range m.Tables() {
		result, err := verifyTable(ctx, table, opts.chunkSize)
		if err != nil {
			// After the failure of one resource, the others can still be compared.
			a.logger.Info("cannot be verified", "resource", table.Resource().Name(), "error", err)
			result.Note = oneLine(a.explain(err))
		}
		all.add(verifiedTable{name, result})
	}
	cancel(nil)
	<-m.Done()
	return nil
}

// verifyFleet compares several clusters, one after the other, so that there is never more
// than one copy in memory.
func (a *app) verifyFleet(ctx context.Context, args []string, opts *verifyOptions, all *verified) error {
	namespace := a.connection.overrides.Context.Namespace
	switch {
	case opts.from.dir != "":
		return usagef("--from is compared with one cluster: leave it out with --contexts and --kubeconfig-dir")
	case !opts.allNamespaces && namespace == "":
		return usagef("say -A or -n NAMESPACE: each context of several may have another default namespace")
	}
	clusters, err := a.fleet(&opts.fleetFlags)
	if err != nil {
		return err
	}
	for _, c := range clusters.Clusters() {
		within, cancel := context.WithTimeout(ctx, discoveryTimeout)
		catalog, err := a.catalogOf(within, c.Config)
		cancel()
		if err == nil {
			err = a.verifyCluster(ctx, cluster{cfg: c.Config, namespace: namespace, catalog: catalog}, args, opts, c.Name, all)
		}
		if usage := (*usageError)(nil); errors.As(err, &usage) || ctx.Err() != nil {
			return cmp.Or(err, context.Cause(ctx))
		}
		if err != nil {
			all.add(verifiedTable{c.Name, verify.Result{Name: strings.Join(args, ","), Verdict: verify.Unknown, Note: oneLine(a.explain(err))}})
		}
	}
	return nil
}

// compared returns the source of the copy that is compared with the cluster: the cluster
// itself, or a directory.
func (a *app) compared(ctx context.Context, f *from) (cluster, error) {
	at, err := a.place(ctx, f)
	if err != nil || at.directory == nil {
		return at, err
	}
	if at.cfg, _, err = a.config(); err != nil {
		at.close()
		return at, err
	}
	return at, nil
}

// unknownResult is a failure that must not be treated as a difference.
func (a *app) unknownResult(ctx context.Context, err error) error {
	if usage := (*usageError)(nil); ctx.Err() != nil || errors.As(err, &usage) {
		return err
	}
	return &exitError{code: exitUnknown, err: a.explain(err)}
}

// verifyTable compares one table.
func verifyTable(ctx context.Context, table *mirror.Table, chunkSize int64) (verify.Result, error) {
	if err := untilSynced(ctx, table); err != nil {
		switch why := table.Replica().Health().Err; {
		case denied(why):
			err = why
		case why != nil:
			err = fmt.Errorf("%s; %w", brief(why), err)
		}
		return verify.Result{Name: table.Resource().Name(), Verdict: verify.Unknown}, err
	}
	return verify.Once(ctx, table.Target(), verify.Options{PageSize: chunkSize}) // reports what delayed it, if ctx ended
}

// untilSynced waits until a table is complete. It does not wait for a resource that may not
// be read.
func untilSynced(ctx context.Context, table *mirror.Table) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-table.Replica().Synced():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if err := table.Replica().Health().Err; denied(err) {
				return err
			}
		}
	}
}

// verified is the result of a command.
type verified struct {
	Verdict verify.Verdict  `json:"verdict"`
	Results []verifiedTable `json:"results"`
}

// verifiedTable is the result of a resource, in one of several clusters.
type verifiedTable struct {
	Cluster string `json:"cluster,omitempty"`
	verify.Result
}

// title is how messages name it.
func (t verifiedTable) title() string {
	if t.Cluster == "" {
		return t.Name
	}
	return t.Cluster + ": " + t.Name
}

// add combines results: one difference makes the whole result different. Without a
// difference, one unknown result makes the whole unknown.
func (v *verified) add(r verifiedTable) {
	v.Results = append(v.Results, r)
	switch {
	case len(v.Results) == 1 || r.Verdict == verify.Different:
		v.Verdict = r.Verdict
	case v.Verdict == verify.Equal:
		v.Verdict = r.Verdict
	}
}

func (v *verified) print(out io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	several := slices.ContainsFunc(v.Results, func(r verifiedTable) bool { return r.Cluster != "" })
	if several {
		fmt.Fprint(w, "CLUSTER\t")
	}
	fmt.Fprintln(w, "RESOURCE\tOBJECTS\tVERSION\tDIGEST\tVERDICT")
	for _, r := range v.Results {
		if several {
			fmt.Fprintf(w, "%s\t", term.Clean(r.Cluster))
		}
		version, digest := string(r.Version), r.Digest.String()
		if version == "" {
			version, digest = "-", "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", r.Name, r.Objects, version, digest, r.Verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range v.Results {
		if err := printDetails(out, r); err != nil {
			return err
		}
	}
	return nil
}

// printDetails prints what does not fit into a row of the table.
func printDetails(out io.Writer, r verifiedTable) error {
	var lines []string
	for _, d := range r.Differences {
		lines = append(lines, d.String())
	}
	if more := r.Count() - len(r.Differences); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	if r.Skipped > 0 {
		lines = append(lines, fmt.Sprintf("%d objects changed meanwhile and were not compared", r.Skipped))
	}
	if r.Undecided > 0 {
		lines = append(lines, fmt.Sprintf("%d objects differ, perhaps only because the copy is behind", r.Undecided))
	}
	if r.Unreadable > 0 {
		lines = append(lines, fmt.Sprintf("%d objects could not be read", r.Unreadable))
	}
	if r.Note != "" {
		lines = append(lines, r.Note)
	}
	for i, line := range lines {
		line = term.Clean(line)
		if i == 0 {
			line = "\n" + term.Clean(r.title()) + ":\n  " + line
		} else {
			line = "  " + line
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
