package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/sqlout"
	"github.com/tarnproject/tarn/sqlite"
)

// sqlOptions are the flags of sql.
type sqlOptions struct {
	scope
	asOf
	dir, format, file string
	timeout           time.Duration
	rows              int
	showSecrets       bool
	// pageTokenFile and pageProxy are for reading from a page.
	pageTokenFile, pageProxy string
}

func (a *app) sqlCommand() *cobra.Command {
	var opts sqlOptions
	cmd := &cobra.Command{
		Use:   "sql [QUERY]",
		Short: "Query a replica directory, a page or the cluster with SQL",
		Long: `Answer a statement in SQLite's SQL about any number of resources. A statement
can only read.

With --from the tables are those of a replica directory, which "tarn mirror
--to" keeps, while the mirror runs or later; or those of a page of "tarn serve
--to", by its address. Without --from, the resources that the statement names
are first copied from the cluster.

A resource of the core group is a table of its name, others append their group:
pods, deployments_apps, certificates_cert_manager_io. The table api_resources
lists the resources of a directory; labels are in tables whose names end in
_labels. docs/sql.md has all columns, and ten questions with their answers.

With --as-of or --as-of-version the tables of a directory that keeps a history
are shown as they were, all of them at one moment; each also has a table whose
name ends in _history, with a row for every state. If states may be missing in
an answer about the past, standard error says so. With -o json such an answer is
an object with "gaps" and "rows".

The statement is the argument, or it is read from a file with -f, or from
standard input.`,
		Example: `  # What does not run, and why
  tarn sql "SELECT namespace, name, status, restarts FROM pods WHERE ready = 0" -A

  # Of a directory, as CSV
  tarn sql --from replica -o csv "SELECT node, count(*) AS pods FROM pods GROUP BY node"

  # Ten minutes ago; and what happened since
  tarn sql --from replica --as-of 10m "SELECT name, node FROM pods WHERE ready = 0"
  tarn sql --from replica "SELECT key, operation, status FROM pods_history
    WHERE valid_from > unixepoch() - 600 ORDER BY valid_from"

  # From a file
  tarn sql --from replica -f question.sql -o json --timeout 1m --max-rows 100000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("a statement is one argument, and there are %d: put it in quotes", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.sql(cmd.Context(), args, &opts) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, noFiles
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.dir, "from", "", "query this replica directory, or the page at this address, instead of the cluster")
	_ = cmd.MarkFlagDirname("from")
	opts.asOf.bind(cmd)
	flags.BoolVarP(&opts.allNamespaces, "all-namespaces", "A", false, "copy all namespaces, without --from")
	flags.StringVarP(&opts.format, "output", "o", "table", "how to print: table, json, csv")
	flags.StringVarP(&opts.file, "filename", "f", "", "read the statement from this file; - is standard input")
	flags.DurationVar(&opts.timeout, "timeout", 10*time.Second, "how long the statement may take")
	flags.IntVar(&opts.rows, "max-rows", 10_000, "how many rows to print at most")
	flags.BoolVar(&opts.showSecrets, "show-secrets", false, "without --from, copy the values of Secrets too")
	bindTokenFile(cmd, &opts.pageTokenFile, "file with the token of the page; "+pageToken+" may hold the token itself")
	flags.StringVar(&opts.pageProxy, "page-proxy", "", "reach the page through this proxy; $HTTP_PROXY is ignored")
	_ = cmd.RegisterFlagCompletionFunc("output", choices(sqlout.Formats...))
	return cmd
}

func (a *app) sql(ctx context.Context, args []string, opts *sqlOptions) error {
	switch {
	case !slices.Contains(sqlout.Formats, opts.format):
		return usagef("-o cannot be %q%s; it is table, json or csv", opts.format, didYouMean(near(opts.format, sqlout.Formats)))
	case opts.timeout <= 0 || opts.rows < 1:
		return usagef("--timeout and --max-rows must be more than 0, such as 10s and 1000")
	case len(args) == 1 && opts.file != "":
		return usagef("there is a statement, and -f names another: leave one out")
	}
	if err := opts.asOf.check(opts.dir); err != nil {
		return err
	}
	statement, err := a.statement(args, opts.file)
	if err != nil {
		return err
	}
	switch {
	case isAddress(opts.dir):
		return a.sqlOfPage(ctx, statement, opts)
	case opts.dir != "":
		return a.sqlOfDirectory(ctx, statement, opts)
	}
	return a.sqlOfCluster(ctx, statement, opts)
}

// statement is the SQL statement.
func (a *app) statement(args []string, file string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	raw, err := []byte(nil), error(nil)
	if file == "" || file == "-" {
		raw, err = io.ReadAll(io.LimitReader(a.in, longestStatement))
	} else {
		raw, err = os.ReadFile(file)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("the statement cannot be read: %w", err)
	case strings.TrimSpace(string(raw)) == "":
		return "", usagef("there is no statement: write one in quotes, name a file with -f, or send it to standard input")
	}
	return string(raw), nil
}

// longestStatement is SQLite's limit, which applies here too.
const longestStatement = 1 << 20

func (opts *sqlOptions) limits() sqlite.Limits {
	// Rows are printed while they arrive, so they may be large.
	return sqlite.Limits{Rows: opts.rows, Bytes: 1 << 30, Time: opts.timeout}
}

func (a *app) sqlOfDirectory(ctx context.Context, statement string, opts *sqlOptions) error {
	view, err := sqlite.OpenReader(opts.dir, nil)
	switch {
	case errors.Is(err, sqlite.ErrKey):
		return fmt.Errorf("--from: %s is encrypted, and has no tables that SQL could read; get, watch, query and verify read it", opts.dir)
	case err != nil:
		return explainDirectory("--from", err)
	}
	defer view.Close()
	held, err := view.Holdings(ctx)
	if err != nil {
		return explainDirectory("--from", err)
	}
	tables := make([]string, len(held))
	for i, h := range held {
		tables[i] = h.Name
	}
	read, err := a.answer(ctx, opts.dir, statement, tables, opts)
	if err != nil || opts.past() {
		return err
	}
	oldest := time.Time{}
	for _, table := range read {
		if table.Name != mirror.RecordTable && table.Synced && (oldest.IsZero() || table.LastContact.Before(oldest)) {
			oldest = table.LastContact
		}
	}
	if age := time.Since(oldest); !oldest.IsZero() && age > printAgeFrom {
		fmt.Fprintf(a.errOut, "This is the state of %s ago. Nothing has updated it since.\n", seconds(age))
	}
	return nil
}

// sqlOfCluster copies the resources that the statement names, and runs it on the
// copy.
func (a *app) sqlOfCluster(parent context.Context, statement string, opts *sqlOptions) error {
	at, err := a.cluster(parent)
	if err != nil {
		return err
	}
	wanted, tables := tablesIn(at.catalog, statement)
	folder, err := os.MkdirTemp("", "tarn-sql-")
	if err != nil {
		return fmt.Errorf("a temporary copy cannot be written: %w; set TMPDIR", err)
	}
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(folder, sqlite.Options{Logger: a.logger})
	if err != nil {
		return fmt.Errorf("the copy cannot be made: %w", err)
	}
	defer db.Close()
	if len(wanted) > 0 {
		done, err := a.copyInto(parent, at, wanted, opts, db)
		defer done()
		if err != nil {
			return err
		}
	}
	_, err = a.answer(parent, folder, statement, tables, opts)
	return err
}

// copyInto makes a whole copy of resources on disk. The returned function ends it.
func (a *app) copyInto(parent context.Context, at cluster, wanted []mirror.Resource, opts *sqlOptions, db *sqlite.DB) (done func(), err error) {
	ctx, cancel := context.WithCancelCause(parent)
	names := make([]string, len(wanted))
	for i, r := range wanted {
		names[i] = r.Name()
	}
	m, err := a.startMirror(ctx, cancel, at, names, &opts.scope, mirror.Options{
		ShowSecrets: opts.showSecrets, Disk: &mirror.Disk{DB: db, Secrets: true},
	})
	if err != nil {
		cancel(nil)
		return func() {}, err
	}
	done = func() {
		a.logging.sink.redirect(io.Discard) // client-go logs interrupted requests
		cancel(nil)
		<-m.Done()
	}
	for _, table := range m.Tables() {
		if err := untilSynced(ctx, table); err != nil {
			return done, err
		}
	}
	return done, db.Flush()
}

// answer prints the rows of a statement while they are computed, and what they lack.
// It returns the tables that they were read from.
func (a *app) answer(ctx context.Context, dir, statement string, tables []string, opts *sqlOptions) ([]sqlite.TableState, error) {
	encoder, err := sqlout.NewEncoder(a.out, opts.format)
	if opts.past() || asksPast(statement, tables) {
		encoder, err = sqlout.NewPastEncoder(a.out, opts.format, opts.moment)
	}
	if err != nil {
		return nil, err
	}
	to := &tableRecorder{Encoder: encoder}
	summary, err := opts.moment.Stream(ctx, dir, statement, opts.limits(), to)
	if err != nil && summary.Rows > 0 {
		_ = encoder.End(summary) // the error below is the one to report
	}
	if err != nil {
		return nil, explainPast(mirror.ExplainSQL(err, tables))
	}
	if err := encoder.End(summary); err != nil {
		return nil, err
	}
	if summary.Cut && opts.format != "table" {
		fmt.Fprintf(a.errOut, "There is more than these %d rows; --max-rows allows more.\n", summary.Rows)
	}
	a.printGaps(sqlout.GapsOf(to.read))
	a.printPast(opts.moment, to.read, to.gaps)
	return to.read, a.printRewinds(ctx, dir, opts.moment, to.read)
}

// tableRecorder is an encoder that notes which tables are read.
type tableRecorder struct {
	sqlout.Encoder
	read []sqlite.TableState
	gaps []sqlite.TableGap
}

func (n *tableRecorder) Begin(head sqlite.Head) error {
	n.read, n.gaps = head.Read, head.Gaps
	return n.Encoder.Begin(head)
}
