package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/web"
)

// relayOperation is what operators see of a relay, at addresses of its own: figures for
// Prometheus with the probes, and the page.
type relayOperation struct {
	metrics  string
	profiles bool
	page     string
	pageFlags
	hosts []string
}

func (o *relayOperation) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.metrics, "metrics", "", "where to serve /metrics, /livez and /readyz by plain HTTP, to everybody who reaches it, such as 127.0.0.1:8278")
	flags.BoolVar(&o.profiles, "pprof", false, "serve Go's profiles at /debug/pprof/ of the address of --metrics")
	flags.StringVar(&o.page, "page", "", "where to serve the page, such as "+web.DefaultAddress)
	flags.StringSliceVar(&o.hosts, "page-host", nil, "more host names under which the page may be requested")
	o.pageFlags.bind(cmd)
}

// pageOptions checks the flags, and returns the options of the page.
func (o *relayOperation) pageOptions(a *app, opts *relayOptions) (web.Options, error) {
	page := web.Options{Address: o.page, CertFile: opts.certFile, KeyFile: opts.keyFile, Hosts: o.hosts, FreshWithin: opts.relay.FreshWithin, Logger: a.logger}
	if o.metrics != "" {
		if _, err := checkAddress("--metrics", o.metrics); err != nil {
			return page, err
		}
	} else if o.profiles {
		return page, usagef("--pprof needs --metrics, which says where the profiles are")
	}
	if o.page == "" {
		return page, nil
	}
	if _, err := checkAddress("--page", o.page); err != nil {
		return page, err
	}
	if err := o.pageFlags.check(a, &page); err != nil {
		return page, err
	}
	if err := page.Check(); err != nil {
		return page, asPageFlag(explainPage(err))
	}
	return page, nil
}

// asPageFlag rewords messages that name --listen, by which serve sets the address of its page.
func asPageFlag(err error) error {
	return usagef("%s", strings.Replace(err.Error(), "--listen", "--page", 1))
}

// listen opens the addresses, and returns lines that say where they are. Each function that
// it returns serves one of them until its ctx ends.
func (o *relayOperation) listen(r *relayServer, page web.Options) (serve []func(context.Context) error, said string, err error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	figures := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	if o.page != "" {
		page.Metrics = figures
		server, failed := web.ListenRelay(r.health, page)
		if failed != nil {
			return nil, "", explainListen("--page", failed)
		}
		defer func() {
			if err != nil {
				_ = server.Close()
			}
		}()
		said += fmt.Sprintf("The page: %s\n", server.SignInURL())
		serve = append(serve, server.Serve)
	}
	if o.metrics != "" {
		listener, failed := net.Listen("tcp", o.metrics)
		if failed != nil {
			err = explainListen("--metrics", failed)
			return nil, "", err
		}
		said += fmt.Sprintf("Metrics at http://%s/metrics\n", listener.Addr())
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", figures)
		mux.Handle("GET /livez", r)
		mux.Handle("GET /readyz", r)
		if o.profiles {
			mux.HandleFunc("GET /debug/pprof/", pprof.Index)
			mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
			mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		}
		serve = append(serve, serveFigures(listener, mux))
	}
	return serve, said, nil
}

// serveFigures serves metrics and probes until ctx ends.
func serveFigures(listener net.Listener, figures http.Handler) func(ctx context.Context) error {
	server := &http.Server{
		Handler: figures, MaxHeaderBytes: 16 << 10, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // disconnected clients are not worth a log line
	}
	return func(ctx context.Context) error {
		closed := make(chan struct{})
		unwatch := context.AfterFunc(ctx, func() {
			defer close(closed)
			_ = server.Close()
		})
		err := server.Serve(listener)
		if !unwatch() {
			<-closed
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("the metrics cannot be served any more: %w", err)
	}
}
