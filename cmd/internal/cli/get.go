package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// getOptions are the flags of get.
type getOptions struct {
	scope
	output
	from
	asOf
	watch bool
}

func (a *app) getCommand() *cobra.Command {
	var opts getOptions
	cmd := &cobra.Command{
		Use:   "get RESOURCES [NAMES…] | RESOURCE/NAME…",
		Short: "Show objects once, as kubectl does",
		Long: `Show objects once, with the columns and the flags of kubectl get.

Resources may be named in full, in singular, by their short names, with their
group (deployments.apps), several with commas between them, or by a category
such as "all". Values of Secrets are hidden unless --show-secrets is given.`,
		Example: `  # All pods of the current namespace, of all, and of some labels
  tarn get pods
  tarn get pods -A
  tarn get po -l app=web --field-selector status.phase=Running

  # By name
  tarn get pods web-1 web-2
  tarn get deployments/web services/web

  # Other forms
  tarn get pods -o wide --sort-by .status.startTime
  tarn get pod web-1 -o yaml
  tarn get pods -o jsonpath='{.items[*].metadata.name}'
  tarn get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName

  # From a replica directory, whether its mirror runs or not
  tarn get pods -A --from replica

  # As it was, if the directory keeps a history
  tarn get pods -A --from replica --as-of 10m`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.asOf.check(opts.dir); err != nil {
				return err
			}
			opts.from.moment = opts.asOf.moment
			if opts.watch && opts.past() {
				return usagef("-w and --as-of do not go together: nothing happens in the past; %q shows what did", a.program+" history")
			}
			if opts.watch {
				if flag := opts.output.unsupported(cmd); flag != "" {
					return usagef("--%s and -w cannot be combined: -w shows the same as %q", flag, a.program+" watch")
				}
				return a.watch(cmd.Context(), args, &watchOptions{scope: opts.scope, from: opts.from, format: opts.format})
			}
			return a.get(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeTargets,
	}
	opts.scope.bind(cmd)
	opts.output.bind(cmd)
	opts.output.bindSort(cmd)
	opts.from.bind(cmd)
	opts.asOf.bind(cmd)
	cmd.Flags().BoolVarP(&opts.watch, "watch", "w", false, "then keep watching, as the command watch does")
	return cmd
}

func (a *app) get(ctx context.Context, args []string, opts *getOptions) error {
	if err := errors.Join(opts.scope.check(), opts.output.check()); err != nil {
		return err
	}
	at, wanted, places, err := a.locate(ctx, &opts.scope, &opts.from, readable, args)
	if err != nil {
		return err
	}
	defer at.close()
	if err := at.checkPast(ctx, resourcesOf(wanted)); err != nil {
		return err
	}
	reader, err := at.reader()
	if err != nil {
		return err
	}
	defer a.printAge(ctx, at, resourcesOf(wanted))
	list := metav1.ListOptions{LabelSelector: opts.labels, FieldSelector: opts.fields}
	var failed []error
	if opts.tabular() {
		failed = a.getTables(ctx, reader, places, list, opts)
	} else {
		failed = a.getObjects(ctx, reader, places, list, opts)
	}
	for i, err := range failed {
		failed[i] = withHint(err, at.catalog, args)
	}
	return errors.Join(failed...)
}

// locate finds the cluster or directory to read, and the objects that a command line names in
// it. The caller closes it.
func (a *app) locate(ctx context.Context, s *scope, f *from, allowed func(*mirror.Catalog) finder, args []string) (at cluster, wanted []target, places []location, err error) {
	if at, err = a.place(ctx, f); err != nil {
		return at, nil, nil, err
	}
	if wanted, err = targets(allowed(at.catalog), args); err != nil {
		err = at.notInDirectory(err)
	} else {
		places, err = s.locations(wanted, at.namespace)
	}
	if err != nil {
		at.close()
	}
	return at, wanted, places, err
}

// locations are the requests to make, in the order of the output.
func (s *scope) locations(wanted []target, namespace string) ([]location, error) {
	if s.allNamespaces {
		namespace = ""
	}
	var places []location
	for _, t := range wanted {
		if len(t.names) == 0 {
			places = append(places, location{resource: t.resource, namespace: namespace})
			continue
		}
		switch {
		case s.labels != "" || s.fields != "":
			return nil, usagef("names and selectors do not go together: leave out %q or the selector", t.names[0])
		case s.allNamespaces && t.resource.Namespaced:
			return nil, usagef("%s %q cannot be found by name in all namespaces: give one with -n, or use --field-selector metadata.name=%s", t.resource.Name(), t.names[0], t.names[0])
		}
		for _, name := range t.names {
			places = append(places, location{t.resource, namespace, name})
		}
	}
	return places, nil
}

func (a *app) getTables(ctx context.Context, r objectReader, places []location, list metav1.ListOptions, opts *getOptions) (failed []error) {
	var tables []*shownTable
	for _, place := range places {
		table, err := r.table(ctx, place, list, opts.sortBy != "")
		if err != nil {
			failed = append(failed, place.failed(err))
			continue
		}
		if last := len(tables) - 1; last >= 0 && tables[last].resource.GVR == place.resource.GVR {
			tables[last].Rows = append(tables[last].Rows, table.Rows...)
			continue
		}
		tables = append(tables, &shownTable{table, place.resource})
	}
	tables = slices.DeleteFunc(tables, func(t *shownTable) bool { return len(t.Rows) == 0 })
	if len(tables) == 0 && len(failed) == 0 {
		a.printNothingFound(places)
	}
	a.cutCells(tables)
	if err := opts.printTables(a.out, tables, kinds(places) > 1, opts.allNamespaces); err != nil {
		failed = append(failed, err)
	}
	return failed
}

func (a *app) getObjects(ctx context.Context, r objectReader, places []location, list metav1.ListOptions, opts *getOptions) (failed []error) {
	var all []unstructured.Unstructured
	hidden := false
	for _, place := range places {
		objects, err := r.objects(ctx, place, list)
		if err != nil {
			failed = append(failed, place.failed(err))
			continue
		}
		if place.resource.Secret() && !opts.showSecrets {
			for i := range objects {
				shown, some := mirror.HideValues(&objects[i], a.appliedCopies()...)
				objects[i], hidden = *shown, hidden || some
			}
		}
		all = append(all, objects...)
	}
	if hidden {
		fmt.Fprintln(a.errOut, "Values of Secrets are hidden; --show-secrets shows them.")
	}
	if len(failed) == len(places) {
		return failed
	}
	single := len(places) == 1 && places[0].name != ""
	if err := opts.printObjects(a.out, all, single); err != nil {
		failed = append(failed, err)
	}
	return failed
}

// printNothingFound prints kubectl's message, which scripts look for.
func (a *app) printNothingFound(places []location) {
	if p := places[0]; p.resource.Namespaced && p.namespace != "" {
		fmt.Fprintf(a.errOut, "No resources found in %s namespace.\n", p.namespace)
		return
	}
	fmt.Fprintln(a.errOut, "No resources found")
}

func kinds(places []location) int {
	seen := map[string]bool{}
	for _, p := range places {
		seen[p.resource.Name()] = true
	}
	return len(seen)
}

// withHint explains to a user who writes "pods deployments" that the second word is read as a
// name.
func withHint(err error, catalog *mirror.Catalog, args []string) error {
	if !apierrors.IsNotFound(err) || len(args) < 2 {
		return err
	}
	for _, arg := range args[1:] {
		if _, unknown := catalog.Find(arg); unknown == nil && strings.Contains(err.Error(), `"`+arg+`"`) {
			return fmt.Errorf("%w; for several resources write %s", err, strings.Join(args, ","))
		}
	}
	return err
}

func resourcesOf(wanted []target) (all []mirror.Resource) {
	for _, t := range wanted {
		all = append(all, t.resource)
	}
	return all
}
