package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/fleet"
)

// feedAgain is the pause before a cluster that could not be fed is tried again.
const feedAgain = 5 * time.Second

// feedFleet feeds an engine with several clusters. Each has an engine of its own, with its
// own position and lease.
//
// Why not one copy of all clusters, as a mirror has: it would have one position, and a
// cluster that another process feeds would block all others.
func (a *app) feedFleet(parent context.Context, giveUp context.CancelCauseFunc, args []string, opts *feedOptions) error {
	namespace := a.connection.overrides.Context.Namespace
	if !opts.allNamespaces && namespace == "" {
		return usagef("say -A or -n NAMESPACE: each context of several may have another default namespace")
	}
	clusters, err := a.fleet(&opts.fleetFlags)
	if err != nil {
		return err
	}
	if opts.to == "nats" { // one server for all
		server, err := startNATS(opts)
		if err != nil {
			return err
		}
		defer server.Stop()
		opts.to = server.URL()
	}
	figures, err := a.serveFeedFigures(parent, giveUp, opts)
	if err != nil {
		return err
	}
	defer figures.wait()
	f := &feeders{feeder: feeder{app: a, args: args, opts: opts, figures: figures}, namespace: namespace, ends: map[string]func(){}}
	defer f.stopAll()
	defer giveUp(nil) // before waiting for the others
	for _, c := range clusters.Clusters() {
		if err := f.start(parent, c); err != nil {
			return err
		}
	}
	for change := range clusters.Changes(parent) {
		for _, name := range change.Removed {
			f.stop(name)
		}
		for _, c := range change.Added {
			if err := f.start(parent, c); err != nil {
				a.logger.Error("a cluster that was added cannot be fed", "cluster", c.Name, "error", err)
			}
		}
	}
	<-parent.Done()
	if cause := context.Cause(parent); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// feeders feed several clusters.
type feeders struct {
	feeder
	namespace string
	// printing keeps lines of different clusters apart.
	printing sync.Mutex
	// ends has, for each cluster, a function that stops its feeding and waits for the end.
	ends map[string]func()
}

// start begins to feed the engine with another cluster. It fails if the engine's address is
// wrong.
func (f *feeders) start(parent context.Context, c fleet.Cluster) error {
	one := f.feeder
	opts := *f.opts
	opts.clusterName = c.Name
	one.opts, one.cluster, one.out = &opts, c.Name, &clusterLines{name: c.Name, out: f.app.out, mu: &f.printing}
	to, err := openEngine(&opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(parent)
	var running sync.WaitGroup
	running.Go(func() {
		defer to.close()
		one.keepRunning(ctx, cluster{cfg: c.Config, namespace: f.namespace}, to)
	})
	f.ends[c.Name] = func() {
		cancel()
		running.Wait()
	}
	return nil
}

func (f *feeders) stop(name string) {
	if end := f.ends[name]; end != nil {
		end()
		delete(f.ends, name)
	}
}

func (f *feeders) stopAll() {
	for name := range f.ends {
		f.stop(name)
	}
}

// keepRunning feeds until ctx ends. It retries a cluster that does not answer, or that
// refuses everything.
func (f *feeder) keepRunning(ctx context.Context, at cluster, to engine) {
	defer f.figures.remove(f.cluster)
	ticker := time.NewTicker(feedAgain)
	defer ticker.Stop()
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, discoveryTimeout)
		var err error
		at.catalog, err = f.app.catalogOf(within, at.cfg)
		cancel()
		if err == nil {
			err = f.run(ctx, at, to)
		}
		if ctx.Err() != nil {
			return
		}
		why := "is not fed: " + oneLine(err)
		f.figures.waits(f.cluster, why)
		fmt.Fprintf(f.out, "%s %s; it is tried again\n", stamp(time.Now()), why)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// clusterLines writes lines that begin with the name of a cluster. Each Write is a line.
type clusterLines struct {
	name string
	out  io.Writer
	mu   *sync.Mutex
}

func (l *clusterLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintf(l.out, "%s: %s", l.name, line); err != nil {
		return 0, err
	}
	return len(line), nil
}
