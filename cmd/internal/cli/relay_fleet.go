package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/cmd/internal/web"
	"github.com/tarnproject/tarn/metrics/relaymetrics"
	"github.com/tarnproject/tarn/relay"
)

// relayServer is what the command relay serves: one relay, or the relays of several clusters.
type relayServer struct {
	http.Handler
	run       func(ctx context.Context) error
	collector prometheus.Collector
	// synced waits for the copies, and describes them; it returns empty if ctx ends first.
	synced func(ctx context.Context) string
	// health is what the page shows.
	health func() web.RelayHealth
	// only is the relay; nil if there are several.
	only *relay.Relay
}

// newRelay makes the relay, or one for each cluster.
func (a *app) newRelay(opts *relayOptions, audit *slog.Logger) (*relayServer, error) {
	if opts.clusters != nil {
		return a.newRelays(opts, audit)
	}
	r, err := relay.New(opts.relay)
	if err != nil {
		return nil, err
	}
	return &relayServer{
		Handler: r, run: r.Run, collector: relaymetrics.NewCollector(r), only: r,
		health: func() web.RelayHealth {
			h := r.Health()
			return web.RelayHealth{Clusters: map[string]relay.Health{"": h}, NotReady: h.NotReady}
		},
		synced: func(ctx context.Context) string {
			if r.WaitSynced(ctx) != nil {
				return ""
			}
			return plural(len(r.Stats()), "resource")
		},
	}, nil
}

// relays are the relays of a fleet.
type relays struct {
	*relay.Fleet
	opts   *relayOptions
	audit  *slog.Logger
	logger *slog.Logger
}

func (a *app) newRelays(opts *relayOptions, audit *slog.Logger) (*relayServer, error) {
	all := &relays{relay.NewFleet(), opts, audit, a.logger}
	for _, c := range opts.clusters.Clusters() {
		if err := all.add(c); err != nil {
			return nil, err
		}
	}
	return &relayServer{
		Handler: all, run: all.run, collector: relaymetrics.NewFleetCollector(all.Fleet), synced: all.synced, health: all.health,
	}, nil
}

// health returns the health of each cluster.
func (f *relays) health() web.RelayHealth {
	all := web.RelayHealth{Clusters: map[string]relay.Health{}, NotReady: f.Ready()}
	for name, r := range f.Relays() {
		all.Clusters[name] = r.Health()
	}
	return all
}

// add makes the relay of a cluster. Each has a directory of its own.
func (f *relays) add(c fleet.Cluster) error {
	options := f.opts.relay
	options.Config = c.Config
	prepareRelayed(options.Config)
	if options.Directory != "" {
		options.Directory = filepath.Join(options.Directory, c.Name)
	}
	if f.audit != nil {
		options.Audit = auditTo(f.audit.With("cluster", c.Name))
	}
	options.Logger = f.logger.With("cluster", c.Name)
	r, err := relay.New(options)
	if err == nil {
		err = f.Add(c.Name, r)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	return nil
}

// run runs the relays, and adds and removes them as the fleet changes.
func (f *relays) run(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() {
		for change := range f.opts.clusters.Changes(ctx) {
			for _, name := range change.Removed {
				f.logger.Info("a cluster is removed", "cluster", name)
				if err := f.Remove(name); err != nil {
					f.logger.Error("a cluster cannot be removed", "cluster", name, "error", err)
				}
			}
			for _, c := range change.Added {
				f.logger.Info("a cluster is added", "cluster", c.Name, "server", c.Config.Host)
				if err := f.add(c); err != nil {
					f.logger.Error("a cluster cannot be added; correct its kubeconfig", "cluster", c.Name, "error", err)
				}
			}
		}
	})
	return f.Fleet.Run(ctx)
}

// synced waits for the first cluster to sync: others may be unavailable for long.
func (f *relays) synced(ctx context.Context) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	first := make(chan string, 1)
	for name, r := range f.Relays() {
		waiting.Go(func() {
			if r.WaitSynced(ctx) != nil {
				return
			}
			select {
			case first <- name:
			default:
			}
		})
	}
	select {
	case name := <-first:
		return "the first cluster, " + name
	case <-ctx.Done():
		return ""
	}
}

// auditTo logs who read what.
func auditTo(audit *slog.Logger) func(relay.Access) {
	return func(access relay.Access) {
		audit.Info("read", "caller", access.Caller.Name, "verb", access.Verb, "resource", resourceName(access.Resource),
			"namespace", access.Namespace, "name", access.Name, "labels", access.LabelSelector, "fields", access.FieldSelector, "from", access.From)
	}
}

// relayedCluster is the cluster, or the fleet, that is relayed.
func (a *app) relayedCluster(ctx context.Context, opts *relayOptions) (cluster, error) {
	if !opts.several() {
		return a.cluster(ctx)
	}
	all, err := a.fleet(&opts.fleetFlags)
	if err != nil {
		return cluster{}, err
	}
	catalog, err := a.catalogOfFleet(ctx, all.Clusters())
	if err != nil {
		return cluster{}, errors.Join(errors.New("a relay needs one cluster that says what it offers"), err)
	}
	return cluster{fleet: all, catalog: catalog}, nil
}
