package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/fleet"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
	"k8s.io/client-go/rest"
)

// from holds the flags by which a command reads a replica directory instead of a cluster.
type from struct {
	dir, keyFile string
	// moment is the moment of the past that the command shows; see [asOf].
	moment sqlite.Moment
}

func (f *from) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "from", "", "read this replica directory, which mirror --to keeps or kept, and not the cluster; of several clusters, --context names one")
	bindKey(cmd, &f.keyFile)
	_ = cmd.MarkFlagDirname("from")
}

// keyVariable may hold the key itself.
const keyVariable = "TARN_KEY"

func bindKey(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "key-file", "", "file with the key that the replica directory is encrypted with; the key itself may be in "+keyVariable)
}

// key returns the encryption key of a directory, nil if it is not encrypted.
func (a *app) key(file string) ([]byte, error) {
	if file != "" {
		return sqlite.KeyFromFile(file)
	}
	if _, ok := a.getenv(keyVariable); ok {
		return sqlite.KeyFromEnvironment(keyVariable)
	}
	return nil, nil
}

// cluster is where a command works: how to reach it, the default namespace, and its
// resources.
type cluster struct {
	cfg       *rest.Config
	namespace string
	catalog   *mirror.Catalog
	// fleet, if set, has the clusters that are read instead of one.
	fleet *fleet.Fleet
	// directory, if set, is read instead of the server.
	directory *mirror.Directory
	// moment is the moment of the directory's history that is shown.
	moment sqlite.Moment
	// only names the cluster of the directory to read if there are several; empty for all.
	only string
}

func (a *app) cluster(ctx context.Context) (cluster, error) {
	cfg, namespace, err := a.config()
	if err != nil {
		return cluster{}, err
	}
	catalog, err := a.catalogOf(ctx, cfg)
	if ctx.Err() != nil {
		return cluster{}, context.Cause(ctx)
	}
	return cluster{cfg: cfg, namespace: namespace, catalog: catalog}, err
}

// place is a cluster, or the copy of one in a directory, which needs no server.
func (a *app) place(ctx context.Context, f *from) (cluster, error) {
	if f.dir == "" {
		return a.cluster(ctx)
	}
	if isAddress(f.dir) {
		return cluster{}, usagef("--from %s: only %q can ask a page; name the directory that it keeps", f.dir, a.program+" sql")
	}
	key, err := a.key(f.keyFile)
	if err != nil {
		return cluster{}, err
	}
	directory, err := mirror.OpenDirectory(ctx, f.dir, key)
	if err != nil {
		return cluster{}, explainDirectory("--from", err)
	}
	at := cluster{directory: directory, moment: f.moment, only: a.connection.overrides.CurrentContext, catalog: directory.Catalog(), namespace: a.connection.overrides.Context.Namespace}
	switch held := directory.Namespaces(); {
	case at.namespace != "":
	case len(held) == 1:
		at.namespace = held[0]
	default:
		// The namespace of the kubeconfig counts here as elsewhere, if there is a kubeconfig.
		at.namespace = "default"
		if _, namespace, err := a.load(); err == nil {
			at.namespace = namespace
		}
	}
	return at, nil
}

func (at cluster) close() {
	if at.directory != nil {
		_ = at.directory.Close() // it was only read
	}
}

// start copies resources from where the command works. A copy of a directory can be
// compared with the server if the config is set too.
func (at cluster) start(ctx context.Context, resources []mirror.Resource, options mirror.Options) (*mirror.Mirror, error) {
	if at.directory != nil {
		options.AsOf, options.Cluster = at.moment, at.only
		return at.directory.Start(ctx, at.cfg, resources, options)
	}
	if at.fleet != nil {
		return mirror.StartFleet(ctx, at.fleet, resources, options)
	}
	return mirror.Start(ctx, at.cfg, resources, options)
}

// reader reads objects and tables of them.
func (at cluster) reader() (objectReader, error) {
	if at.directory != nil {
		return &directoryReader{at.directory, at.moment, at.only}, nil
	}
	return newReader(at.cfg)
}

// printAgeFrom is the smallest age of a directory that is printed.
const printAgeFrom = 15 * time.Second

// printAge prints the age of a directory's content, unless a mirror seems to keep it up to
// date. For a moment of the past it prints what printMoment prints.
func (a *app) printAge(ctx context.Context, at cluster, resources []mirror.Resource) {
	if at.directory == nil {
		return
	}
	if !at.moment.Present() {
		a.printMoment(ctx, at, resources)
		return
	}
	oldest := time.Time{}
	for _, r := range resources {
		contact, err := at.directory.LastContact(ctx, r)
		if err == nil && !contact.IsZero() && (oldest.IsZero() || contact.Before(oldest)) {
			oldest = contact
		}
	}
	if age := time.Since(oldest); !oldest.IsZero() && age > printAgeFrom {
		fmt.Fprintf(a.errOut, "This is the state of %s ago. Nothing has updated it since.\n", seconds(age))
	}
}

// explainDirectory says what named the directory, a flag or its own path, and how to pass a
// key.
func explainDirectory(named string, err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sqlite: "), "mirror: ")
	if slices.ContainsFunc([]string{"is encrypted", "another key", "a key was given"}, func(s string) bool { return strings.Contains(text, s) }) {
		text += "; the key is given by --key-file or " + keyVariable
	}
	reworded := rewordedError{text, err}
	if strings.HasPrefix(text, named+" ") {
		return reworded
	}
	return fmt.Errorf("%s: %w", named, reworded)
}

// rewordedError is an error with another text.
type rewordedError struct {
	text string
	err  error
}

func (e rewordedError) Error() string { return e.text }
func (e rewordedError) Unwrap() error { return e.err }

// shownColumns are the columns of a resource that get and watch show from a directory: the
// columns of its SQL table.
func shownColumns(d *mirror.Directory, r mirror.Resource, at sqlite.Moment) (*diskColumns, error) {
	columns, read, err := ondisk.Show(r.GVR, d.Columns(r)...)
	if err != nil {
		return nil, err
	}
	shown := newDiskColumns(r, columns, read)
	shown.at = at.Time
	return shown, nil
}
