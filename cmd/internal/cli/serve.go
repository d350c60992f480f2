package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/cmd/internal/web"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	copying
	pageFlags
	page web.Options
}

func (a *app) serveCommand() *cobra.Command {
	var opts serveOptions
	cmd := &cobra.Command{
		Use:   "serve RESOURCES…",
		Short: "Keep a live copy of resources, and serve it as a page and an API",
		Long: `Keep a live copy of resources in memory, and serve it until Ctrl-C: as a page to
look at, as an HTTP API, with metrics for Prometheus at /metrics and the probes
/healthz and /readyz (ready is synced and fresh).

It listens on this machine only, and prints a link that signs in: a machine may
have other users. The token in it is new at each start, unless you give one by
--page-token-file or TARN_PAGE_TOKEN; programs send it as "Authorization: Bearer
…". --no-page-token turns it off. Any other address needs a certificate and your
own token, of 16 characters or more. The page answers under the names in the
certificate, and under those given with --page-host. Certificate and token are
read again when their files change; another token ends all sessions.

With --to the copy is kept in a directory too, as by "tarn mirror --to", and the
page and the API answer SQL. With --history it keeps past states as well.

With --contexts or --kubeconfig-dir it serves several clusters, as "tarn mirror"
copies them; /readyz succeeds while at least one of them is synced and fresh.

Everything is read-only. Values of Secrets are neither kept nor shown unless
--show-secrets is given; Secrets are on disk, as they are kept, only with
--with-secrets.`,
		Example: `  # At http://127.0.0.1:8276/
  tarn serve pods deployments replicasets -A

  # For others: with TLS and a token
  openssl rand -hex 16 > token && chmod 600 token
  tarn serve all -A --listen 0.0.0.0:8276 --page-token-file token \
    --tls-cert-file page.crt --tls-private-key-file page.key

  # Everything there is, for scripts
  tarn serve '*' -A --page-token-file token &
  curl -H "Authorization: Bearer $(cat token)" \
    'http://127.0.0.1:8276/api/tables/pods?q=status.phase!=Running'`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.serve(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	opts.copying.bind(cmd)
	opts.pageFlags.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.page.Address, "listen", web.DefaultAddress, "where to listen; port 0 for a free one")
	flags.StringVar(&opts.page.CertFile, "tls-cert-file", "", "certificate to serve HTTPS with")
	flags.StringVar(&opts.page.KeyFile, "tls-private-key-file", "", "key of the certificate")
	flags.StringSliceVar(&opts.page.Hosts, "page-host", nil, "more host names under which the page may be requested")
	flags.BoolVar(&opts.page.ShowSecrets, "show-secrets", false, "keep and show the values of Secrets")
	flags.BoolVar(&opts.page.Profiles, "pprof", false, "serve Go's profiles at /debug/pprof/")
	flags.DurationVar(&opts.page.FreshWithin, "fresh-within", 3*time.Minute, "how old the last contact with the server, and changes that wait for the disk, may be for /readyz to succeed")
	return cmd
}

// serve mirrors and serves until ctx ends. It shows what cannot be copied as a problem on the
// page, and tries again: unlike a view in a terminal, it does not give up, because others use
// it.
func (a *app) serve(ctx context.Context, args []string, opts *serveOptions) (failed error) {
	if err := errors.Join(opts.copying.check(), a.checkPage(opts)); err != nil {
		return err
	}
	at, err := a.origin(ctx, &opts.copying)
	if err != nil {
		return err
	}
	wanted, err := resources(at.catalog, args)
	if err != nil {
		return err
	}
	disk, closeDisk, err := a.open(&opts.keeping)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, closeDisk()) }()
	if at.cfg != nil {
		at.cfg.Timeout = 0 // a timeout is for requests that end by themselves
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := at.start(ctx, wanted, mirror.Options{
		Namespaces: opts.namespaces(at.namespace), LabelSelector: opts.labels, FieldSelector: opts.fields,
		ShowSecrets: opts.page.ShowSecrets, AppliedCopies: a.appliedCopies(), Disk: disk, Verify: opts.period, Logger: a.logger,
	})
	if err != nil {
		return fmt.Errorf("the mirror cannot be started: %w", err)
	}
	defer func() { <-m.Done() }()
	defer cancel()
	opts.page.Name, opts.page.Logger = at.name(), a.logger
	accessLog, closeLog, err := opts.pageFlags.openAccessLog(a)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, closeLog()) }()
	opts.page.AccessLog = accessLog
	page, err := web.Listen(m, opts.page)
	if err != nil {
		return explainListen("--listen", err)
	}
	said := fmt.Sprintf("Serving %s of %s at %s\n", plural(len(wanted), "resource"), at.address(), page.URL())
	if link := page.SignInURL(); link != page.URL() {
		said += fmt.Sprintf("Sign in by this link: %s\n", link)
	}
	fmt.Fprint(a.out, said)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { a.printSynced(ctx, m) })
	return page.Serve(ctx)
}

// checkPage rejects options that the page cannot be served with, before any request to the
// cluster.
func (a *app) checkPage(opts *serveOptions) error {
	if opts.page.FreshWithin <= 0 {
		return usagef("--fresh-within is a time such as 3m, not %v", opts.page.FreshWithin)
	}
	if _, err := checkAddress("--listen", opts.page.Address); err != nil {
		return err
	}
	if err := opts.pageFlags.check(a, &opts.page); err != nil {
		return err
	}
	if err := opts.page.Check(); err != nil {
		return explainPage(err)
	}
	return nil
}

// printSynced reports when everything is synced.
func (a *app) printSynced(ctx context.Context, m *mirror.Mirror) {
	begun := time.Now()
	if m.WaitSynced(ctx) != nil {
		return
	}
	objects := 0
	for _, table := range m.Tables() {
		objects += table.Store().Len()
	}
	fmt.Fprintf(a.out, "Synced %s in %s.\n", plural(objects, "object"), time.Since(begun).Round(time.Millisecond))
	a.printHistory(ctx, m)
}
