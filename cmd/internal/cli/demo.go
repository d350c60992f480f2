package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/demo"
	"github.com/tarnproject/tarn/cmd/internal/web"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	pods, databases int
	rate            float64
	seed            uint64
	faults          bool
	faultSeed       uint64
	lasts           time.Duration
	interval        time.Duration
	listen, api     string
	kubeconfig      string
	pageFlags
}

func (a *app) demoCommand() *cobra.Command {
	var opts demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Mirror a simulated cluster in memory, and show it",
		Long: `Start an API server in memory with a lively cluster on it: deployments are
rolled out and scaled, pods start, crash and recover, now and then a node fails.
Mirror it, in memory and in a temporary directory, and show the copy here and on
a page until Ctrl-C. The page's console and tarn sql query it with SQL. The
printed link signs in; without it nobody else on this machine sees the page, and
without the kubeconfig nobody can change the cluster.

kubectl can be pointed at the cluster: change, create or delete what you like;
the cluster reacts, and the copy follows.

With --faults the connection between the copy and the server is bad: connections
are cut, garbled and silenced, versions expire, the server is busy. The copy is
compared with the server every few seconds.

The same --seed makes the same cluster with the same changes, until you
interfere; another --fault-seed makes other faults.`,
		Example: `  tarn demo

  # A large and busy one
  tarn demo --pods 5000 --rate 500

  # See the copy stay right on a bad day
  tarn demo --faults

  # For scripts
  tarn demo --for 10s --listen 127.0.0.1:0`,
		Args: a.noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context(), &opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.pods, "pods", 500, "usual number of pods")
	flags.IntVar(&opts.databases, "crs", 40, "number of custom resources")
	flags.Float64Var(&opts.rate, "rate", 25, "changes per second; 0 for none")
	flags.Uint64Var(&opts.seed, "seed", 1, "random seed of the cluster's changes")
	flags.BoolVar(&opts.faults, "faults", false, "inject faults between the copy and the server")
	flags.Uint64Var(&opts.faultSeed, "fault-seed", 1, "random seed of the faults")
	flags.DurationVar(&opts.lasts, "for", 0, "end after this time; 0 runs until Ctrl-C")
	flags.DurationVar(&opts.interval, "interval", 10*time.Second, "how often to print when not in a terminal")
	opts.pageFlags.bindOpen(cmd)
	flags.StringVar(&opts.listen, "listen", web.DefaultAddress, "where the page is served, on this machine; port 0 for a free one")
	flags.StringVar(&opts.api, "api-listen", "127.0.0.1:0", "address on this machine where the API server listens")
	flags.StringVar(&opts.kubeconfig, "kubeconfig-out", "", "file to write the kubeconfig to while the demonstration lasts; a temporary one if empty")
	return cmd
}

func (o *demoOptions) check() error {
	switch {
	case o.pods < 1 || o.pods > 100_000:
		return usagef("--pods is from 1 to 100000, not %d", o.pods)
	case o.databases < 0 || o.databases > 100_000:
		return usagef("--crs is from 0 to 100000, not %d", o.databases)
	case !(o.rate >= 0) || math.IsInf(o.rate, 0):
		return usagef("--rate is 0 or more, not %v", o.rate)
	case o.lasts < 0:
		return usagef("--for is a time such as 30s, not %v", o.lasts)
	case o.interval <= 0:
		return usagef("--interval is a time such as 10s, not %v", o.interval)
	}
	return cmp.Or(onThisMachine("--listen", o.listen), onThisMachine("--api-listen", o.api))
}

// demo shows the demonstration until ctx ends, or its time is over. Both are its normal end.
func (a *app) demo(parent context.Context, opts *demoOptions) (failed error) {
	if err := opts.check(); err != nil {
		return err
	}
	live, leave, err := a.screen()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)

	folder, err := os.MkdirTemp("", "tarn-demo-*")
	if err != nil {
		return fmt.Errorf("the copy on disk cannot be written: %w; set TMPDIR to a writable directory", err)
	}
	defer func() { failed = errors.Join(failed, os.RemoveAll(folder)) }()
	kept := keeping{dir: filepath.Join(folder, "replica")}
	disk, closeDisk, err := a.open(&kept)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, closeDisk()) }()

	building := &buildView{live: live, out: a.out, pods: opts.pods, begun: time.Now()}
	session, err := demo.Open(ctx, demo.SessionOptions{
		Config:  demo.Config{Pods: opts.pods, Databases: opts.databases, Rate: opts.rate, Seed: opts.seed, Logger: a.logger, Progress: building.step},
		Address: opts.api, Faults: opts.faults, FaultSeed: opts.faultSeed, Disk: disk,
	})
	building.done()
	if err != nil {
		if parent.Err() != nil {
			return nil
		}
		return explainListen("--api-listen", err)
	}
	defer session.Close()
	kubeconfig, err := writeKubeconfig(session.Server, opts.kubeconfig)
	if err != nil {
		return err
	}
	defer os.Remove(kubeconfig)
	page, err := web.Listen(session.Mirror, web.Options{Name: "demo", Address: opts.listen, Anonymous: opts.noToken, Logger: a.logger})
	if err != nil {
		return explainListen("--listen", err)
	}

	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	beside.Go(func() {
		if err := page.Serve(ctx); err != nil {
			cancel(fmt.Errorf("the page is not served any longer: %w", err))
		}
	})
	a.introduce(session, opts, page.SignInURL(), kubeconfig, kept.dir)
	if opts.lasts > 0 {
		timer := time.AfterFunc(opts.lasts, func() { cancel(errTimeIsUp) })
		defer timer.Stop()
	}
	view := &demoView{session: session, live: live, out: a.out, interval: opts.interval}
	beside.Go(func() { view.compare(ctx) })
	view.run(ctx)
	if cause := context.Cause(ctx); parent.Err() == nil && cause != errTimeIsUp {
		return cause
	}
	return a.conclude(session)
}

// longConclusion is how long the final comparison may take without a message.
const longConclusion = 15 * time.Second

var errTimeIsUp = errors.New("the time is up")

// introduce prints what the user can see, and where.
func (a *app) introduce(session *demo.Session, opts *demoOptions, page, kubeconfig, replica string) {
	fmt.Fprintf(a.out, "A cluster of %s on %s, with about %g changes a second.\n\n",
		plural(opts.pods, "pod"), plural(session.Workload.Nodes(), "node"), opts.rate)
	fmt.Fprintf(a.out, "  see it      %s\n", page)
	fmt.Fprintf(a.out, "  change it   export KUBECONFIG=%s\n", kubeconfig)
	fmt.Fprintf(a.out, "              kubectl get pods -A -w\n")
	fmt.Fprintf(a.out, "              kubectl -n shop set image deployment/storefront storefront=mine:2\n")
	fmt.Fprintf(a.out, "  ask it      in SQL, on the page, or by\n")
	fmt.Fprintf(a.out, "              %s sql --from %s \\\n", a.program, replica)
	fmt.Fprintf(a.out, "                \"SELECT node, count(*) AS pods FROM pods GROUP BY node\"\n")
	if opts.faults {
		fmt.Fprintf(a.out, "\nThe way to the server is a bad one: faults of seed %d.\n", opts.faultSeed)
	}
	fmt.Fprint(a.out, "\nCtrl-C ends it.\n\n")
}

// conclude compares the copy with the server a last time, both at rest.
func (a *app) conclude(session *demo.Session) error {
	session.StopWorkload()
	timeout := session.Comparison.Timeout()
	if timeout > longConclusion {
		fmt.Fprintf(a.out, "Comparing the copy with the server a last time, which may take up to %s.\n", seconds(timeout))
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	finding := session.Comparison.Compare(ctx)
	text := fmt.Sprintf("Ended after %s", plural(int(session.Workload.Writes()), "change"))
	if session.FaultyConnection != nil {
		text += fmt.Sprintf(" and %s (%s)", plural(session.FaultyConnection.Faults(), "injected fault"), session.FaultyConnection)
	}
	fmt.Fprintf(a.out, "%s: %s.\n", text, findingText(finding))
	if len(finding.Different) > 0 {
		return errors.New("the copy is not equal to the server, which is a bug of Tarn; please report it with the flags you used")
	}
	return nil
}

// writeKubeconfig writes a kubeconfig for the server: to the named file, which must not
// exist, because it may belong to somebody; or to a temporary file.
func writeKubeconfig(server *apiserver.Server, name string) (string, error) {
	content, err := server.Kubeconfig()
	if err != nil {
		return "", err
	}
	var file *os.File
	if name == "" {
		file, err = os.CreateTemp("", "tarn-*.kubeconfig")
	} else {
		file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("--kubeconfig-out: %s is there already; remove it, or name another file", name)
	case err != nil:
		return "", fmt.Errorf("the kubeconfig cannot be written: %w; name another file with --kubeconfig-out", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(file.Name())
		return "", fmt.Errorf("the kubeconfig cannot be written: %w; name another file with --kubeconfig-out", err)
	}
	if absolute, err := filepath.Abs(file.Name()); err == nil {
		return absolute, nil
	}
	return file.Name(), nil
}
