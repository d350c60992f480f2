package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/cmd/internal/web"
	"github.com/tarnproject/tarn/relay"
	"github.com/tarnproject/tarn/relay/h2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// clusterAuthorities, instead of a file, means the authorities that the cluster publishes.
const clusterAuthorities = "cluster"

// relayAddress is where a relay listens by default.
const relayAddress = "127.0.0.1:8277"

// relayOptions are the flags of relay.
type relayOptions struct {
	listen            string
	certFile, keyFile string
	clientCA          string
	operation         relayOperation
	auditLog          pageFlags
	demo              bool
	fleetFlags
	relay        relay.Options
	logMegabytes int64
	dirMegabytes int64

	// clusters are the relayed clusters, nil if there is one; origin is how messages name
	// them.
	clusters *fleet.Fleet
	origin   string
}

func (a *app) relayCommand() *cobra.Command {
	var opts relayOptions
	cmd := &cobra.Command{
		Use:   "relay RESOURCES… | --demo",
		Short: "Serve resources from a copy, as a Kubernetes API",
		Long: `Keep a live copy of resources and serve it as a Kubernetes API until Ctrl-C, to
any number of clients. The cluster is watched once. Resource versions
are the cluster's: a client resumes at another relay, or at the cluster itself,
with the version that it has.

Everything else goes to the cluster with the caller's own credentials: writes,
other resources, discovery, logs, exec, port-forward.

The cluster identifies callers by their bearer tokens, and decides what they may
read. This program's own account needs the right to list and watch the
resources, and to create tokenreviews and subjectaccessreviews (the cluster role
system:auth-delegator). Open watches are checked again. For a custom resource it
watches the definition too (customresourcedefinitions).

With -n only some namespaces are copied: -n a,b. Then requests across all
namespaces are refused, and those for other namespaces go to the cluster.

With --dir it restarts with its old content, reads only what has changed, and
answers watches from versions that are up to a day old.

With --client-ca, a client certificate names a caller too, if the request has no
token. Requests of such callers that must go to the cluster are refused, unless
--impersonate is given: then they go there with this program's credentials in
the caller's name, which needs the right to impersonate users and groups.

With --contexts or --kubeconfig-dir it relays several clusters, each at the path
/clusters/NAME, which is part of the server's address in a kubeconfig; /clusters
lists them. An unreachable cluster does not affect the others.

It listens on this machine only, unless it has a certificate, which is read
again when its files change. /livez and /readyz are for probes. Secrets are
relayed only if they are named.

--metrics serves metrics for Prometheus, and the probes, at a separate address:
they name resources and programs, and show no objects. --page serves a page with
the same figures, and with the callers, to visitors who have its token.`,
		Example: `  # A first look: a lively cluster in the process, and a hundred watchers
  tarn relay --demo

  tarn relay pods nodes services endpointslices
  kubectl --server http://127.0.0.1:8277 --token "$TOKEN" get pods -A -w

  tarn relay pods -n shop,billing

  # Several clusters
  tarn relay pods nodes --contexts east,west
  kubectl --server http://127.0.0.1:8277/clusters/east --token "$TOKEN" get pods -A

  # For others
  tarn relay pods --listen 0.0.0.0:8277 \
    --tls-cert-file relay.crt --tls-private-key-file relay.key --audit-log audit.log

  # Who watches, how fresh the copies are, and what the cluster is spared
  tarn relay pods nodes --page 127.0.0.1:8276 --metrics 127.0.0.1:8278`,
		Args: func(cmd *cobra.Command, args []string) error {
			if opts.demo {
				return a.noArguments(cmd, args)
			}
			return a.someResources(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.relay(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeResources,
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.listen, "listen", relayAddress, "where to listen; port 0 for a free one, unix:PATH for a socket")
	flags.BoolVar(&opts.demo, "demo", false, "relay a simulated cluster to a hundred watchers")
	flags.StringVar(&opts.certFile, "tls-cert-file", "", "certificate to serve HTTPS with")
	flags.StringVar(&opts.keyFile, "tls-private-key-file", "", "key of the certificate")
	flags.StringVar(&opts.clientCA, "client-ca", "", "file with the authorities whose client certificates name callers, read again when it changes; \"cluster\" for those of the cluster")
	flags.BoolVar(&opts.relay.Impersonate, "impersonate", false, "pass requests of callers with client certificates on in their name")
	opts.operation.bind(cmd)
	opts.fleetFlags.bind(cmd)
	flags.StringVar(&opts.auditLog.accessLog, "audit-log", "", `file to write to who read what from the copies; "-" for where messages go`)
	flags.Int64Var(&opts.logMegabytes, "past-megabytes", 64, "how much of the past of each resource is kept in memory, for watches from older versions")
	flags.DurationVar(&opts.relay.LogAge, "past", time.Hour, "for how long it is kept")
	flags.StringVar(&opts.relay.Directory, "dir", "", "directory for content and past, for a restart without a list and for watches from old versions")
	flags.Int64Var(&opts.dirMegabytes, "dir-megabytes", 4096, "how much of the past of each resource is kept in the directory")
	flags.DurationVar(&opts.relay.DirectoryAge, "dir-past", 24*time.Hour, "for how long it is kept there")
	flags.IntVar(&opts.relay.CallerWatches, "caller-watches", 10_000, "how many watches one caller may have open")
	flags.IntVar(&opts.relay.CallerRequests, "caller-requests", 200, "how many other requests one caller may have in flight")
	flags.DurationVar(&opts.relay.DrainTime, "drain", 5*time.Second, "the time over which watches are closed at the end")
	flags.DurationVar(&opts.relay.FreshWithin, "fresh-within", 3*time.Minute, "how old the last contact with the cluster may be for /readyz to succeed")
	return cmd
}

func (o *relayOptions) check() error {
	host, err := checkRelayAddress(o.listen)
	switch {
	case err != nil:
		return err
	case (o.certFile == "") != (o.keyFile == ""):
		return usagef("--tls-cert-file and --tls-private-key-file belong together")
	case o.certFile == "" && host != "" && host != "localhost" && !net.ParseIP(host).IsLoopback():
		return usagef("--listen %s: callers would send their tokens in the clear; give --tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1", o.listen)
	case o.clientCA != "" && o.certFile == "":
		return usagef("--client-ca needs --tls-cert-file and --tls-private-key-file: client certificates are shown by TLS")
	case o.clientCA == clusterAuthorities && o.several():
		return usagef("--client-ca cluster is for one cluster: name a file with --contexts and --kubeconfig-dir")
	case o.relay.Impersonate && o.clientCA == "":
		return usagef("--impersonate is for callers with client certificates: give --client-ca")
	case o.demo && (o.certFile != "" || host == ""):
		return usagef("--demo is for this machine only: leave out --tls-cert-file and listen on 127.0.0.1")
	case o.logMegabytes < 1:
		return usagef("--past-megabytes is 1 or more, not %d", o.logMegabytes)
	case o.dirMegabytes < 1:
		return usagef("--dir-megabytes is 1 or more, not %d", o.dirMegabytes)
	case o.several() && o.demo:
		return usagef("--demo shows one cluster: leave it out with --contexts and --kubeconfig-dir")
	case o.demo && o.relay.Directory != "":
		return usagef("--demo has a new cluster each time: leave out --dir")
	case o.relay.CallerWatches < 1 || o.relay.CallerRequests < 1:
		return usagef("--caller-watches and --caller-requests are 1 or more")
	}
	for flag, value := range map[string]time.Duration{"--past": o.relay.LogAge, "--dir-past": o.relay.DirectoryAge, "--drain": o.relay.DrainTime, "--fresh-within": o.relay.FreshWithin} {
		if value <= 0 {
			return usagef("%s is a time such as 1m, not %v", flag, value)
		}
	}
	return nil
}

// relay serves until ctx ends.
func (a *app) relay(ctx context.Context, args []string, opts *relayOptions) (failed error) {
	if err := opts.check(); err != nil {
		return err
	}
	certificate, err := web.Certificate(opts.certFile, opts.keyFile, a.logger)
	if err != nil {
		return explainPage(err)
	}
	page, err := opts.operation.pageOptions(a, opts)
	if err != nil {
		return err
	}
	if opts.clientCA != "" && opts.clientCA != clusterAuthorities {
		if opts.relay.ClientCAs, err = web.Authorities(opts.clientCA, a.logger); err != nil {
			return fmt.Errorf("--client-ca: %w", err)
		}
	}
	var shown *relayDemo
	if opts.demo {
		if shown, err = startRelayDemo(ctx, a.logger); err != nil {
			return err
		}
		defer shown.close()
		opts.relay.Config, opts.relay.Resources = shown.server.Config(), shown.resources()
		opts.origin = opts.relay.Config.Host
	} else if err := a.relayed(ctx, args, opts); err != nil {
		return err
	}
	var authorities *relay.ClusterAuthorities
	if opts.clientCA == clusterAuthorities {
		if authorities, err = relay.NewClusterAuthorities(ctx, opts.relay.Config, a.logger); err != nil {
			return fmt.Errorf("--client-ca: %w", err)
		}
		opts.relay.ClientCAs = authorities.Pool
	}
	page.Name = strings.TrimPrefix(opts.origin, "https://")
	accessLog, closeAccessLog, err := opts.operation.openAccessLog(a)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, closeAccessLog()) }()
	page.AccessLog = accessLog
	audit, closeLog, err := opts.auditLog.openAccessLog(a)
	if err != nil {
		return errors.New(strings.Replace(err.Error(), "--access-log", "--audit-log", 1))
	}
	defer func() { failed = errors.Join(failed, closeLog()) }()
	if audit != nil {
		opts.relay.Audit = auditTo(audit)
	}
	opts.relay.LogBytes, opts.relay.DirectoryBytes, opts.relay.Logger = opts.logMegabytes<<20, opts.dirMegabytes<<20, a.logger
	opts.relay.OwnConnections = true
	r, err := a.newRelay(opts, audit)
	if err != nil {
		return err
	}
	listener, err := listenForRelay(opts.listen)
	if err != nil {
		return explainListen("--listen", err)
	}
	where := fmt.Sprintf("http://%s/", listener.Addr())
	if listener.Addr().Network() == "unix" {
		where = opts.listen
	}
	if certificate != nil {
		where = strings.Replace(where, "http://", "https://", 1)
		trust := &tls.Config{
			GetCertificate: certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			DynamicRecordSizingDisabled: true, // a record is one system call
		}
		if opts.clientCA != "" {
			trust.ClientAuth = tls.RequestClientCert // the relay verifies them, for each request
		}
		listener = tls.NewListener(listener, trust)
	}
	beside, said, err := opts.operation.listen(r, page)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if authorities != nil {
		beside = append(beside, func(ctx context.Context) error {
			authorities.Run(ctx)
			return nil
		})
	}
	fmt.Fprintf(a.out, "Relaying %s of %s at %s\n%s", plural(len(opts.relay.Resources), "resource"), opts.origin, where, said)
	return a.serveRelay(ctx, r, listener, beside, func(ctx context.Context) {
		if shown != nil {
			shown.show(ctx, a, r.only, where)
		}
	})
}

// relayed finds the cluster, and the requested resources in it.
func (a *app) relayed(ctx context.Context, args []string, opts *relayOptions) error {
	if asked := a.connection.overrides.Context.Namespace; asked != "" {
		opts.relay.Namespaces = strings.Split(asked, ",")
	}
	for _, namespace := range opts.relay.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return usagef("--namespace: %q is not a namespace: %s; write several as a,b", namespace, problems[0])
		}
	}
	at, err := a.relayedCluster(ctx, opts)
	if err != nil {
		return err
	}
	wanted, err := resources(at.catalog, args)
	if err != nil {
		return err
	}
	for _, r := range wanted {
		if r.GVR.Group != "" || r.GVR.Resource != "secrets" || namesSecrets(args) {
			opts.relay.Resources = append(opts.relay.Resources, r.GVR)
		}
	}
	opts.clusters, opts.origin = at.fleet, at.address()
	if at.cfg != nil {
		prepareRelayed(at.cfg)
		opts.relay.Config = at.cfg
	}
	return nil
}

// prepareRelayed changes the config of a cluster for a relay.
func prepareRelayed(cfg *rest.Config) {
	cfg.Timeout = 0 // a timeout is for requests that end by themselves
	cfg.QPS = -1    // each caller and each watch may need a review
}

// serveRelay serves while the relay runs, and until it has drained, and runs the functions in
// also beside it. Once the copies are complete, it runs then until ctx ends.
func (a *app) serveRelay(ctx context.Context, r *relayServer, listener net.Listener, also []func(context.Context) error, then func(ctx context.Context)) error {
	server := &http.Server{
		Handler: r, MaxHeaderBytes: 64 << 10, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // disconnected clients are not worth a log line
	}
	h2.Configure(server)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Metrics and page stay until the relay has drained: a probe wants to know.
	whole, end := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	failures := make(chan error, len(also))
	for _, serve := range also {
		beside.Go(func() {
			failures <- serve(whole)
			cancel()
		})
	}
	failed := make(chan error, 1)
	beside.Go(func() {
		failed <- server.Serve(listener)
		cancel()
	})
	beside.Go(func() {
		if what := r.synced(ctx); what != "" {
			fmt.Fprintf(a.out, "Synced %s.\n", what)
			then(ctx)
		}
	})
	_ = r.run(ctx) // returns why ctx ended
	// The last answers may still be on their way to their connections.
	leaving, left := context.WithTimeout(whole, time.Second)
	_ = server.Shutdown(leaving)
	left()
	_ = server.Close()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the relay cannot serve any more: %w", err)
	}
	end()
	var failure error
	for range also {
		failure = errors.Join(failure, <-failures)
	}
	return failure
}

// namesSecrets reports whether the arguments name Secrets, and do not only include them by
// "all" or "*".
func namesSecrets(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "secret") })
}

func resourceName(r schema.GroupVersionResource) string { return r.GroupResource().String() }
