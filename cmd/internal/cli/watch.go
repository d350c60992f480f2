package cli

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/sqlite"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	scope
	from
	format      string
	diff        bool
	watchOnly   bool
	showSecrets bool
}

func (a *app) watchCommand() *cobra.Command {
	var opts watchOptions
	cmd := &cobra.Command{
		Use:   "watch RESOURCES [NAMES…] | RESOURCE/NAME…",
		Short: "Show objects and their changes, live",
		Long: `Show objects and their changes until Ctrl-C.

In a terminal it is a table with the columns of kubectl get, in which changes
stand out for some seconds: + new, ~ changed, - deleted. When there are more
objects than lines, those that changed last are shown. Elsewhere each change is
a line: time, ADDED, MODIFIED or DELETED, object, and what changed.

With --diff it shows each field that changes, its old value and its new one.

After a lost connection the watch resumes, and the table shows the latest state
again; the heading says how fresh it is.`,
		Example: `  tarn watch pods
  tarn watch deployments,pods -n shop
  tarn watch pods -A -l app=web

  # One object, field by field
  tarn watch deployment/web --diff

  # Lines for other programs
  tarn watch pods -A --watch-only | grep DELETED`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.watch(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeTargets,
	}
	opts.scope.bind(cmd)
	opts.from.bind(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&opts.format, "output", "o", "", "wide shows more columns")
	flags.BoolVar(&opts.diff, "diff", false, "show the fields that change, with their old and new values")
	flags.BoolVar(&opts.watchOnly, "watch-only", false, "in plain lines, leave out the objects that exist at the start")
	flags.BoolVar(&opts.showSecrets, "show-secrets", false, "show the values of Secrets that change, with --diff")
	_ = cmd.RegisterFlagCompletionFunc("output", choices("wide"))
	return cmd
}

func (a *app) watch(ctx context.Context, args []string, opts *watchOptions) error {
	if opts.format != "" && opts.format != "wide" {
		return usagef("-o of watch can only be wide, not %q; see %q for other formats", opts.format, a.program+" get --help")
	}
	if err := opts.scope.check(); err != nil {
		return err
	}
	at, wanted, _, err := a.locate(ctx, &opts.scope, &opts.from, copyable, args)
	if err != nil {
		return err
	}
	defer at.close()
	wanted = merged(wanted)
	if at.cfg != nil {
		at.cfg.Timeout = 0 // a timeout is for requests that end by themselves
	}
	a.printAge(ctx, at, resourcesOf(wanted))
	if opts.diff {
		return a.watchFields(ctx, at, wanted, opts, at.namespace)
	}
	err = a.watchTables(ctx, at, wanted, opts, at.namespace)
	return withHint(err, at.catalog, args)
}

// watched is one watched resource.
type watched struct {
	target
	source  rowTable
	replica *tarn.Replica[*row]
}

// rowChange is a change to a row of a watched resource.
type rowChange struct {
	of     *watched
	change tarn.Change[*row]
}

// watchTables follows the server's tables and shows them until ctx ends.
func (a *app) watchTables(parent context.Context, at cluster, wanted []target, opts *watchOptions, namespace string) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	denials := newDeniedResources(len(wanted), cancel)
	changes := make(chan rowChange, 256)
	var all []*watched
	for _, t := range wanted {
		w, err := a.newWatched(at, t, opts, namespace, denials)
		if err != nil {
			return err
		}
		_, err = w.replica.Subscribe(func(c tarn.Change[*row]) {
			if len(w.names) > 1 && !slices.Contains(w.names, c.Object.name) {
				return
			}
			select {
			case changes <- rowChange{w, c}:
			case <-ctx.Done():
			}
		}, tarn.SubscribeOptions{Name: "view"})
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	live, leave, err := a.screen()
	if err != nil {
		return err
	}
	defer leave()
	var running sync.WaitGroup
	for _, w := range all {
		running.Go(func() { _ = w.replica.Run(ctx) })
		running.Go(func() {
			if err := missing(ctx, w.replica, w.target, namespace); err != nil {
				cancel(err)
			}
		})
	}
	if live != nil {
		newWatchView(live, all, opts).run(ctx, changes)
	} else {
		a.printChanges(ctx, changes, opts)
	}
	running.Wait()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

func (a *app) newWatched(at cluster, t target, opts *watchOptions, namespace string, denials *deniedResources) (*watched, error) {
	if opts.allNamespaces {
		namespace = ""
	}
	list := metav1.ListOptions{LabelSelector: opts.labels, FieldSelector: opts.fields}
	if len(t.names) == 1 {
		list.FieldSelector = "metadata.name=" + t.names[0]
	}
	source, sections, err := at.rows(location{resource: t.resource, namespace: namespace}, list)
	if err != nil {
		return nil, err
	}
	name := t.resource.Name()
	w := &watched{target: t, source: source}
	options := tarn.Options[*row]{
		Name: name, Equal: sameRow, Logger: a.logger,
		OnError: func(ctx context.Context, err error) {
			a.logger.Info("watch failed", "resource", name, "error", err)
			denials.add(name, w.replica.Synced(), err)
		},
	}
	if len(sections) > 0 {
		w.replica, err = tarn.NewReplicaOf(sections, memory.New[*row](), options)
	} else {
		w.replica, err = tarn.NewReplica(source, memory.New[*row](), options)
	}
	return w, err
}

// rows returns the source of the rows of a location; for several clusters, the source of the
// first, and a section for each.
func (at cluster) rows(place location, list metav1.ListOptions) (rowTable, []tarn.Section[*row], error) {
	if at.directory == nil {
		reader, err := newReader(at.cfg)
		return &rowSource{reader: reader, place: place, list: list}, nil, err
	}
	options := mirror.Options{LabelSelector: list.LabelSelector, FieldSelector: list.FieldSelector, Cluster: at.only}
	if place.namespace != "" {
		options.Namespaces = []string{place.namespace}
	}
	sources, err := at.directory.Sources(context.Background(), place.resource, options)
	if err != nil {
		return nil, nil, err
	}
	columns, err := shownColumns(at.directory, place.resource, sqlite.Moment{})
	if err != nil || !at.directory.Fleet() {
		return &diskRows{Source: sources[0].Source, columns: columns}, nil, err
	}
	columns.addCluster()
	var sections []tarn.Section[*row]
	for _, s := range sources {
		rows := &diskRows{Source: s.Source, columns: columns, cluster: s.Cluster}
		sections = append(sections, tarn.Section[*row]{Name: s.Cluster, Source: rows, Prefix: kube.ClusterPrefix(s.Cluster), Independent: true})
	}
	if len(sections) == 0 {
		return nil, nil, errors.New("--from: the directory has nothing of any cluster yet")
	}
	return sections[0].Source.(*diskRows), sections, nil
}

// missing waits for the first state, and then reports objects that were requested
// by name and do not exist.
func missing[T any](ctx context.Context, replica *tarn.Replica[T], wanted target, namespace string) error {
	if len(wanted.names) == 0 || replica.WaitSynced(ctx) != nil {
		return nil
	}
	for _, name := range wanted.names {
		key := tarn.Key(name)
		if wanted.resource.Namespaced {
			key = tarn.Key(namespace + "/" + name)
		}
		if _, ok := replica.Get(key); !ok && !inSomeCluster(replica, key) {
			place := location{wanted.resource, namespace, name}
			return place.failed(apierrors.NewNotFound(wanted.resource.GVR.GroupResource(), name))
		}
	}
	return nil
}

// inSomeCluster reports whether one of several clusters has an object.
func inSomeCluster[T any](replica *tarn.Replica[T], key tarn.Key) bool {
	for _, section := range replica.Health().Sections {
		if _, ok := replica.Get(kube.ClusterPrefix(section.Section) + key); ok && section.Section != "" {
			return true
		}
	}
	return false
}
