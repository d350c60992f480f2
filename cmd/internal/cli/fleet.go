package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// fleetFlags are the flags of a command that works on several clusters.
type fleetFlags struct {
	contexts []string
	dir      string
}

func (f *fleetFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.contexts, "contexts", nil, "several clusters: these contexts of the kubeconfig, each under its name or another one, as in east,prod=CONTEXT; '*' is all of them")
	flags.StringVar(&f.dir, "kubeconfig-dir", "", "several clusters: the kubeconfigs in this directory, each named after its file; clusters come and go with the files")
	_ = cmd.MarkFlagDirname("kubeconfig-dir")
}

// several reports whether the flags name a fleet.
func (f *fleetFlags) several() bool { return len(f.contexts) > 0 || f.dir != "" }

// fleet finds the clusters.
func (a *app) fleet(f *fleetFlags) (*fleet.Fleet, error) {
	switch {
	case len(f.contexts) > 0 && f.dir != "":
		return nil, usagef("--contexts and --kubeconfig-dir do not go together: name one of them")
	case a.connection.overrides.CurrentContext != "":
		return nil, usagef("--context names one cluster, and --contexts or --kubeconfig-dir several: name one of them")
	}
	adjust := func(cfg *rest.Config) {
		a.prepareConfig(cfg)
		cfg.Timeout = 0 // a timeout is for requests that end by themselves
	}
	if f.dir != "" {
		return fleet.InDirectory(f.dir, adjust, a.logger)
	}
	named, err := a.namedContexts(f.contexts)
	if err != nil {
		return nil, err
	}
	var clusters []fleet.Cluster
	for _, name := range slices.Sorted(maps.Keys(named)) {
		one := a.connection
		one.overrides.CurrentContext = named[name]
		cfg, err := one.loader().ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("the context %q: %w", named[name], a.explainConfig(one.loader(), err))
		}
		adjust(cfg)
		clusters = append(clusters, fleet.Cluster{Name: name, Config: cfg})
	}
	return fleet.Of(clusters...)
}

// namedContexts returns the contexts that --contexts names, by the names of the clusters.
func (a *app) namedContexts(asked []string) (map[string]string, error) {
	loader := a.connection.loader()
	config, err := loader.RawConfig()
	if err != nil {
		return nil, a.explainConfig(loader, err)
	}
	all := slices.Sorted(maps.Keys(config.Contexts))
	if len(asked) == 1 && asked[0] == "*" {
		if asked = all; len(all) == 0 {
			return nil, errors.New("--contexts: there is no context in the kubeconfig; check --kubeconfig and KUBECONFIG")
		}
	}
	named := map[string]string{}
	for _, text := range asked {
		name, context, renamed := strings.Cut(text, "=")
		if _, whole := config.Contexts[text]; whole || !renamed {
			name, context = fleet.NameOf(text), text
		}
		if _, ok := config.Contexts[context]; !ok {
			return nil, fmt.Errorf("--contexts: %w", noContext(context, all))
		}
		if _, twice := named[name]; twice {
			return nil, usagef("--contexts: two clusters are called %q; rename one, as in NAME=%s", name, context)
		}
		named[name] = context
	}
	return named, nil
}

// discoveryTimeout is how long a cluster of a fleet may take to list its resources.
const discoveryTimeout = 10 * time.Second

// catalogOfFleet merges the resources of the clusters that answer. It fails if none does.
func (a *app) catalogOfFleet(ctx context.Context, clusters []fleet.Cluster) (*mirror.Catalog, error) {
	within, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	catalogs, failed := make([]*mirror.Catalog, len(clusters)), make([]error, len(clusters))
	var asking sync.WaitGroup
	for i, c := range clusters {
		asking.Go(func() { catalogs[i], failed[i] = mirror.Discover(within, c.Config) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var answered []*mirror.Catalog
	for i, c := range clusters {
		if failed[i] == nil {
			answered = append(answered, catalogs[i])
			continue
		}
		a.logger.Warn("a cluster does not say what it offers; its copy begins when it answers", "cluster", c.Name, "error", brief(failed[i]))
	}
	if len(answered) == 0 {
		return nil, fmt.Errorf("none of %s answers: %w", plural(len(clusters), "cluster"), errors.Join(failed...))
	}
	merged := mirror.Merge(answered...)
	for _, warning := range merged.Warnings() {
		a.logger.Warn("discovery is not complete", "error", warning)
	}
	return merged, nil
}

// origin returns what a command that keeps a copy reads from: one cluster or several.
func (a *app) origin(ctx context.Context, c *copying) (cluster, error) {
	if !c.fleetFlags.several() {
		return a.clusterOr(ctx, &c.keeping)
	}
	namespace := a.connection.overrides.Context.Namespace
	switch {
	case c.verifying.period > 0:
		return cluster{}, usagef("--verify compares with one cluster: leave it out with several")
	case !c.allNamespaces && namespace == "":
		return cluster{}, usagef("say -A or -n NAMESPACE: each context of several may have another default namespace")
	}
	all, err := a.fleet(&c.fleetFlags)
	if err != nil {
		return cluster{}, err
	}
	at := cluster{fleet: all, namespace: namespace}
	at.catalog, err = a.catalogOfFleet(ctx, all.Clusters())
	if err != nil && ctx.Err() == nil {
		at.catalog, err = a.rememberedCatalog(ctx, &c.keeping, err)
	}
	return at, err
}

// name is how messages refer to the source of a copy.
func (at cluster) name() string {
	if at.fleet != nil {
		return plural(len(at.fleet.Clusters()), "cluster")
	}
	return strings.TrimPrefix(at.cfg.Host, "https://")
}

// address is the server's address in the config, or the number of clusters.
func (at cluster) address() string {
	if at.fleet != nil {
		return at.name()
	}
	return at.cfg.Host
}
