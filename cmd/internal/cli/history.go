package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/kube"
)

// historyOptions are the flags of history.
type historyOptions struct {
	from
	diff, showSecrets bool
	since, format     string
	// sinceTime is the parsed since; zero for everything that is kept.
	sinceTime time.Time
}

func (a *app) historyCommand() *cobra.Command {
	var opts historyOptions
	cmd := &cobra.Command{
		Use:   "history RESOURCE/NAME… | RESOURCE NAMES…",
		Short: "Show every state that objects had, or what changed between them",
		Long: `Show every state that an object had while a mirror kept its history, oldest
first: the time at which the mirror received it, the operation, the version, and
the columns that changed. An object that was deleted and created again is shown
with both its lives. ADDED is the first state of a life in the history.

With --diff it shows each field that changed, its old value and its new one.

Where states may be missing, a line says so.

The directory is one that "tarn mirror --to DIR --history 24h" keeps; the mirror
may be running or not.`,
		Example: `  tarn history pod/web-1 -n shop --from replica
  tarn history deployment/web -n shop --from replica --diff --since 1h

  # Of a time in the past, for other programs
  tarn history pod/web-1 --from replica --since 2026-11-16T02:00:00Z -o json`,
		Args: a.someResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.history(cmd.Context(), args, &opts)
		},
		ValidArgsFunction: a.completeTargets,
	}
	opts.from.bind(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&opts.diff, "diff", false, "show the fields that changed, with their old and new values")
	flags.StringVar(&opts.since, "since", "", "only what happened since then: 1h (ago), 2026-11-16T02:00:00Z, or '2026-11-16 02:00' in local time")
	flags.StringVarP(&opts.format, "output", "o", "", "json prints an array, with whole objects, or with --diff their changes")
	flags.BoolVar(&opts.showSecrets, "show-secrets", false, "show the values of Secrets")
	_ = cmd.RegisterFlagCompletionFunc("since", choices("10m", "1h", "24h"))
	_ = cmd.RegisterFlagCompletionFunc("output", choices("json"))
	return cmd
}

func (o *historyOptions) check() (err error) {
	switch {
	case o.dir == "":
		return usagef("the past is in a replica directory that keeps a history: name it with --from")
	case o.format != "" && o.format != "json":
		return usagef("-o is json, or left out, not %q", o.format)
	case o.since != "":
		o.sinceTime, err = parseMoment("--since", o.since, time.Now())
	}
	return err
}

// history prints the history of some objects.
func (a *app) history(ctx context.Context, args []string, opts *historyOptions) error {
	if err := opts.check(); err != nil {
		return err
	}
	at, wanted, places, err := a.locate(ctx, &scope{}, &opts.from, copyable, args)
	if err != nil {
		return err
	}
	defer at.close()
	for _, place := range places {
		if place.name == "" {
			return usagef("name an object: %q", fmt.Sprintf("%s history %s/NAME", a.program, place.resource.Name()))
		}
	}
	var printer historyPrinter = &historyLines{out: a.fieldPrinter(), diff: opts.diff}
	if opts.format == "json" {
		printer = &historyJSON{out: a.out, diff: opts.diff}
	}
	var begins []string
	for _, place := range places {
		since, err := a.historyOf(ctx, at, place, printer, opts)
		if err != nil {
			return explainPast(err)
		}
		begins = append(begins, fmt.Sprintf("The history of %s begins at %s.", place.resource.Name(), dayTime(since, time.Now())))
	}
	for _, line := range slices.Compact(begins) {
		fmt.Fprintln(a.errOut, line)
	}
	a.printAge(ctx, at, resourcesOf(wanted))
	return printer.end()
}

// historyPrinter prints the states and gaps of objects, one object after the other.
type historyPrinter interface {
	// object is called before the entries of each object.
	object(of *historyObject) error
	// entry is called with each state. before is the previous one, nil when the object was created.
	entry(e changelog.Typed[mirror.Object], before mirror.Object) error
	end() error
}

// historyObject is the object whose history is printed.
type historyObject struct {
	target
	key     tarn.Key
	columns *diskColumns
}

// historyOf prints the history of one object, and returns since when it is kept.
func (a *app) historyOf(ctx context.Context, at cluster, place location, printer historyPrinter, opts *historyOptions) (since time.Time, err error) {
	log, err := at.directory.Log(place.resource)
	if err != nil {
		return since, err
	}
	bounds, err := log.Bounds(ctx)
	if err != nil {
		return since, err
	}
	since = bounds.Since
	of := &historyObject{target: target{resource: place.resource}, key: place.key()}
	if at.directory.Fleet() {
		if at.only == "" {
			return since, usagef("--from: the directory is of several clusters: say with --context which one the object is in")
		}
		of.key = kube.ClusterPrefix(at.only) + of.key
	}
	if of.columns, err = shownColumns(at.directory, place.resource, at.moment); err != nil {
		return since, err
	}
	if err := printer.object(of); err != nil {
		return since, err
	}
	known, shown, life := false, 0, ""
	var before mirror.Object
	for e, err := range at.directory.History(ctx, place.resource, of.key, mirror.Options{ShowSecrets: opts.showSecrets, AppliedCopies: a.appliedCopies()}) {
		switch {
		case err != nil:
			return since, err
		case e.Gap == nil:
			known = true
			if e.UID != life || e.Operation == changelog.Added {
				before, life = nil, e.UID
			}
			if e.Heard.Before(opts.sinceTime) {
				before = e.Object
				continue
			}
			shown++
		case e.Gap.Until.Before(opts.sinceTime):
			continue
		}
		if err := printer.entry(e, before); err != nil {
			return since, err
		}
		if e.Gap == nil {
			before = e.Object
		}
	}
	switch now := time.Now(); {
	case !known:
		return since, fmt.Errorf("nothing is known of %s: the history of %s begins at %s; check the name, and the namespace with -n", of.target.key(of.key), place.resource.Name(), dayTime(since, now))
	case shown == 0:
		fmt.Fprintf(a.errOut, "Nothing happened to %s since %s.\n", of.target.key(of.key), dayTime(opts.sinceTime, now))
	}
	return since, nil
}

// key is the key of the object in its table.
func (l location) key() tarn.Key {
	if !l.resource.Namespaced {
		return tarn.Key(l.name)
	}
	return tarn.Key(l.namespace + "/" + l.name)
}
