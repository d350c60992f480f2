package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/doctor"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"k8s.io/client-go/rest"
)

// exitProblems is the exit code of doctor if a check failed.
const exitProblems = 1

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	allNamespaces bool
	dir           string
	format        string
	timeout       time.Duration
}

func (a *app) doctorCommand() *cobra.Command {
	var opts doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [RESOURCES…]",
		Short: "Check what a copy of a cluster needs, and say how to fix it",
		Long: `Check the connection to the server, and what a copy needs: the kubeconfig,
names, connection, certificate and credentials, both clocks, the versions, the
right to list and watch the resources (kubectl's category "all" if none are
named), and what the server can do. With --to a directory is checked too:
whether it can be written, whether another process has it open, its format and
the free space.

It prints a line for each check: ok, warn, FAIL or skip, what was found, and
what to do. It changes nothing, and reads at most 50 objects.

It exits with 0 if no check fails, else with 1.`,
		Example: `  tarn doctor
  tarn doctor pods deployments -A
  tarn doctor pods -n shop --to replica
  tarn doctor -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.doctor(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&opts.allNamespaces, "all-namespaces", "A", false, "check the rights in all namespaces")
	flags.StringVar(&opts.dir, "to", "", "check this directory too, for use with mirror --to")
	flags.DurationVar(&opts.timeout, "timeout", 10*time.Second, "how long a single check may take")
	flags.StringVarP(&opts.format, "output", "o", "", "how to print: lines, or json")
	_ = cmd.MarkFlagDirname("to")
	_ = cmd.RegisterFlagCompletionFunc("output", choices("json"))
	return cmd
}

func (a *app) doctor(ctx context.Context, args []string, opts *doctorOptions) error {
	switch {
	case opts.format != "" && opts.format != "json":
		return usagef("-o cannot be %q: leave it out for lines, or say json", opts.format)
	case opts.timeout <= 0:
		return usagef("--timeout must be more than 0, such as 10s")
	}
	report := doctorReport{Checks: []doctor.Result{}}
	d := doctor.New(opts.timeout, func(r doctor.Result) {
		r.Found, r.Advice = term.Clean(r.Found), term.Clean(r.Advice)
		if opts.format == "json" {
			report.Checks = append(report.Checks, r)
			return
		}
		fmt.Fprintln(a.out, doctorLine(r))
	})
	a.examine(ctx, d, args, opts)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if opts.format == "json" {
		report.OK = !d.Failed()
		encoder := json.NewEncoder(a.out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(report); err != nil {
			return err
		}
	}
	if d.Failed() {
		return &exitError{code: exitProblems}
	}
	return nil
}

// doctorReport is what -o json prints.
type doctorReport struct {
	OK     bool            `json:"ok"`
	Checks []doctor.Result `json:"checks"`
}

// doctorLine is a result in one line. A failure is in capitals, so that it stands out.
func doctorLine(r doctor.Result) string {
	status := string(r.Status)
	if r.Status == doctor.Fail {
		status = "FAIL"
	}
	line := fmt.Sprintf("%-4s  %-14s  %s", status, r.Check, r.Found)
	if r.Advice != "" {
		line += "; " + r.Advice
	}
	return line
}

// examine makes the checks in the order in which they depend on each other.
func (a *app) examine(ctx context.Context, d *doctor.Doctor, args []string, opts *doctorOptions) {
	const kubeconfig, discovery = "kubeconfig", "resources"
	var cfg *rest.Config
	var namespace string
	d.Check(ctx, kubeconfig, nil, func(context.Context) (r doctor.Result) {
		cfg, namespace, r = a.findConfig()
		return r
	})
	if cfg == nil {
		cfg = &rest.Config{} // of no use: all checks that need it are skipped
	}
	cfg.Timeout = 0 // each check has its own timeout
	d.Network(ctx, cfg, kubeconfig)
	server, err := doctor.NewServer(cfg)
	if err != nil {
		d.Check(ctx, "client", []string{kubeconfig, "tls"}, func(context.Context) doctor.Result {
			return doctor.Result{Status: doctor.Fail, Found: oneLine(err), Advice: "check the certificates and credentials in the kubeconfig"}
		})
	} else {
		d.Identity(ctx, server, buildVersion().ClientGo, kubeconfig)
		var wanted []doctor.Collection
		d.Check(ctx, discovery, []string{kubeconfig, "tls", "authentication"}, func(ctx context.Context) (r doctor.Result) {
			wanted, r = a.collections(ctx, cfg, namespace, args, opts)
			return r
		})
		granted := d.Rights(ctx, server, wanted, discovery)
		d.Features(ctx, server, granted, !cfg.DisableCompression, discovery)
	}
	if opts.dir != "" {
		d.Disk(ctx, opts.dir)
	}
}

// findConfig reports the cluster, and the file that names it.
func (a *app) findConfig() (*rest.Config, string, doctor.Result) {
	cfg, namespace, err := a.config()
	if err != nil {
		return nil, "", failedCheck(err)
	}
	if a.connect != nil {
		return cfg, namespace, doctor.Result{Status: doctor.OK, Found: cfg.Host}
	}
	raw, err := a.connection.loader().RawConfig()
	if err != nil {
		return nil, "", failedCheck(err)
	}
	found := "inside of a pod: its service account"
	name := cmp.Or(a.connection.overrides.CurrentContext, raw.CurrentContext)
	switch chosen := raw.Contexts[name]; {
	case chosen != nil:
		found = fmt.Sprintf("%s: context %q, cluster %q, user %q, namespace %q", chosen.LocationOfOrigin, name, chosen.Cluster, chosen.AuthInfo, namespace)
	case a.connection.overrides.ClusterInfo.Server != "":
		found = "no file: the server is given by --server"
	}
	return cfg, namespace, doctor.Result{Status: doctor.OK, Found: found + ", server " + cfg.Host}
}

// failedCheck turns an error into a result. Errors of this package say what to do after the
// last semicolon.
func failedCheck(err error) doctor.Result {
	found, advice := oneLine(err), ""
	if at := strings.LastIndex(found, "; "); at >= 0 {
		found, advice = found[:at], found[at+2:]
	}
	return doctor.Result{Status: doctor.Fail, Found: found, Advice: advice}
}

// collections returns the collections to check rights for.
func (a *app) collections(ctx context.Context, cfg *rest.Config, namespace string, args []string, opts *doctorOptions) ([]doctor.Collection, doctor.Result) {
	catalog, err := mirror.Discover(ctx, cfg)
	if err != nil {
		return nil, failedCheck(a.explain(err))
	}
	if len(args) == 0 {
		args = []string{"all"}
	}
	wanted, err := resources(catalog, args)
	if err != nil {
		return nil, failedCheck(err)
	}
	if opts.allNamespaces {
		namespace = ""
	}
	var all []doctor.Collection
	var names []string
	for _, r := range wanted {
		c := doctor.Collection{Resource: r.GVR}
		if r.Namespaced {
			c.Namespace = namespace
		}
		all, names = append(all, c), append(names, r.Name())
	}
	if warnings := catalog.Warnings(); len(warnings) > 0 {
		r := failedCheck(warnings[0])
		r.Status = doctor.Warn
		return all, r
	}
	return all, doctor.Result{Status: doctor.OK, Found: strings.Join(names, ", ")}
}
