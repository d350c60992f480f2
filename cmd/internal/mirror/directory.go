package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// Directory reads what a mirror has on disk, while the mirror runs or after it has ended.
//
// It is a source like a server: [Directory.Start] makes a mirror of it, so that everything
// that works on a mirror works on a directory.
type Directory struct {
	dir     string
	view    *sqlite.Reader
	pool    *wire.Pool
	records []record
}

// OpenDirectory opens a directory that a mirror wrote. The key is its encryption key, nil if
// there is none.
func OpenDirectory(ctx context.Context, dir string, key []byte) (*Directory, error) {
	view, err := sqlite.OpenReader(dir, key)
	if err != nil {
		return nil, err
	}
	d := &Directory{dir: dir, view: view, pool: wire.NewPool()}
	_, err = view.Walk(ctx, RecordTable, func(e sqlite.Entry) error {
		raw, err := e.Bytes()
		if err != nil {
			return err
		}
		r, err := records{}.Decode(raw)
		d.records = append(d.records, r)
		return err
	})
	switch {
	case errors.Is(err, sqlite.ErrNoCollection):
		err = fmt.Errorf("mirror: %s is a replica directory, but no mirror wrote it: only SQL can be asked of it", dir)
	case err == nil && len(d.records) == 0:
		err = fmt.Errorf("mirror: %s holds nothing yet", dir)
	}
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	slices.SortFunc(d.records, func(a, b record) int { return strings.Compare(a.Name(), b.Name()) })
	return d, nil
}

// Close closes the directory. Everything that was started from it must have ended.
func (d *Directory) Close() error { return d.view.Close() }

// Catalog has the resources of the directory.
func (d *Directory) Catalog() *Catalog {
	c := &Catalog{}
	for _, r := range d.records {
		c.preferred = append(c.preferred, r.Resource)
	}
	return c
}

// Columns are the columns from a resource's definition.
func (d *Directory) Columns(r Resource) []ondisk.Column {
	found, _ := d.record(r)
	return found.Columns
}

// Namespaces are the namespaces to which the directory is narrowed; none means all.
func (d *Directory) Namespaces() []string {
	for _, r := range d.records {
		if r.Namespaced {
			return r.Namespaces
		}
	}
	return nil
}

// Server is the address of the server whose copy the directory has.
func (d *Directory) Server() string {
	if len(d.records) == 0 {
		return ""
	}
	address, _, _ := strings.Cut(d.records[0].Server, " ")
	return address
}

func (d *Directory) record(r Resource) (record, bool) {
	i := slices.IndexFunc(d.records, func(known record) bool { return known.Name() == r.Name() })
	if i < 0 {
		return record{}, false
	}
	return d.records[i], true
}

// LastContact is the time of the last contact with the server before a resource was
// written; zero if it is not on disk.
func (d *Directory) LastContact(ctx context.Context, r Resource) (time.Time, error) {
	known, ok := d.record(r)
	if !ok {
		return time.Time{}, nil
	}
	h, err := d.view.State(ctx, known.Table)
	if err != nil || !h.Whole {
		return time.Time{}, err
	}
	return h.LastContact, nil
}

// Fleet says whether the directory is a copy of several clusters.
func (d *Directory) Fleet() bool { return len(d.records) > 0 && d.records[0].Fleet }

// Clusters are the names of the clusters in the directory, sorted. There are none if it has
// one cluster, which has no name.
func (d *Directory) Clusters(ctx context.Context) (names []string, err error) {
	for _, r := range d.records {
		if !r.Fleet {
			continue
		}
		h, err := d.view.State(ctx, r.Table)
		if err != nil {
			return nil, err
		}
		for _, p := range h.Positions {
			names = append(names, p.Section)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// chosen returns the clusters that the options select.
func (d *Directory) chosen(ctx context.Context, opts Options) ([]string, error) {
	all, err := d.Clusters(ctx)
	switch {
	case err != nil || opts.Cluster == "":
		return all, err
	case !d.Fleet():
		return nil, nil // the only one
	case !slices.Contains(all, opts.Cluster):
		return nil, fmt.Errorf("mirror: %s has no cluster %q; it has %s", d.dir, opts.Cluster, strings.Join(all, ", "))
	}
	return []string{opts.Cluster}, nil
}

// A ClusterSource is a directory's source of a resource in one cluster.
type ClusterSource struct {
	tarn.Source[Object]
	// Cluster is its name, empty if the directory has one cluster.
	Cluster string
}

// Sources returns the directory's sources of a resource, narrowed by the options: one for
// each cluster. They never show more than the mirror that writes the directory.
func (d *Directory) Sources(ctx context.Context, r Resource, opts Options) (all []ClusterSource, err error) {
	if !d.Fleet() {
		source, err := d.source(r, "", opts)
		return []ClusterSource{{source, ""}}, err
	}
	names, err := d.chosen(ctx, opts)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		source, err := d.source(r, name, opts)
		if err != nil {
			return nil, err
		}
		all = append(all, ClusterSource{source, name})
	}
	return all, nil
}

func (d *Directory) source(r Resource, cluster string, opts Options) (tarn.Source[Object], error) {
	s, err := d.newSource(r, opts)
	if err != nil {
		return nil, err
	}
	s.cluster = cluster
	if !opts.AsOf.Present() {
		return &pastSource{diskSource: s, log: d.view.Log(s.table), at: opts.AsOf}, nil
	}
	return s, nil
}

func (d *Directory) newSource(r Resource, opts Options) (*diskSource, error) {
	known, ok := d.record(r)
	if !ok {
		return nil, fmt.Errorf("mirror: %s has no %s", d.dir, r.Name())
	}
	if n := known.Namespaces; r.Namespaced && len(n) > 0 {
		for _, asked := range opts.Namespaces {
			if asked != metav1.NamespaceAll && !slices.Contains(n, asked) {
				return nil, fmt.Errorf("mirror: %s has %s of the namespaces %s only, not of %s", d.dir, r.Name(), strings.Join(n, ", "), asked)
			}
		}
	}
	filter, err := newObjectFilter(r, opts)
	if err != nil {
		return nil, err
	}
	decoder, err := wire.NewDecoder(objectType, wire.Options{Pool: d.pool})
	if err != nil {
		return nil, err
	}
	s := &diskSource{view: d.view, table: known.Table, filter: filter, decoder: decoder, pool: d.pool, appliedCopies: opts.appliedCopies()}
	s.hide = r.Secret() && !opts.ShowSecrets && !known.Hidden
	return s, nil
}

// Start makes a mirror of the directory. With a config, its tables can be compared with that
// server ([Table.Target]); without, no server is needed.
func (d *Directory) Start(ctx context.Context, cfg *rest.Config, resources []Resource, opts Options) (*Mirror, error) {
	if err := check(resources, opts); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	m := &Mirror{done: make(chan struct{})}
	if cfg != nil && d.Fleet() {
		return nil, fmt.Errorf("mirror: %s is of several clusters, and cannot be compared with one server", d.dir)
	}
	if cfg != nil {
		var err error
		if m.client, err = kube.NewClient(cfg); err != nil {
			return nil, err
		}
	}
	clusters, err := d.chosen(ctx, opts)
	if err != nil {
		return nil, err
	}
	m.clusters = clusters
	for _, r := range resources {
		t, err := d.table(ctx, m, r, opts)
		if err != nil {
			return nil, err
		}
		m.tables = append(m.tables, t)
	}
	if err := d.sameCluster(ctx, m); err != nil {
		return nil, err
	}
	m.start(ctx, nil)
	return m, nil
}

// sameCluster checks whether tables are compared with the server that they are a copy of, as
// far as that can be known.
func (d *Directory) sameCluster(ctx context.Context, m *Mirror) error {
	if m.client == nil {
		return nil
	}
	known, _ := d.record(m.tables[0].resource)
	h, err := d.view.State(ctx, known.Table)
	if err != nil || h.Label == "" {
		return err
	}
	uid, err := kube.OriginOf(m.client, m.tables[0].Source().Collection()).ServerUID(ctx)
	if err != nil || uid == "" || uid == h.Label {
		return err
	}
	return fmt.Errorf("mirror: %s: %w: it is of the cluster %s, and this is %s", d.dir, tarn.ErrOtherSource, h.Label, uid)
}

func (d *Directory) table(ctx context.Context, m *Mirror, r Resource, opts Options) (*Table, error) {
	sources, err := d.Sources(ctx, r, opts)
	if err != nil {
		return nil, err
	}
	known, _ := d.record(r)
	t := &Table{resource: r, store: memory.New[Object](), columns: known.Columns, namespaces: narrowed(r, opts), appliedCopies: opts.appliedCopies()}
	if m.client != nil {
		// The server's objects get the same transformation as the directory's objects got,
		// and then what is hidden from the reader here is hidden from them.
		decoding := kube.SourceOptions{Drop: slices.DeleteFunc(slices.Clone(known.Without), isAnnotation)}
		decoding.Unshared = r.Secret() && (known.Hidden || !opts.ShowSecrets)
		t.transform = t.transformOf(annotationsIn(known.Without), decoding.Unshared)
		compared := opts
		if len(compared.Namespaces) == 0 {
			compared.Namespaces = known.Namespaces
		}
		compared.LabelSelector = both(known.LabelSelector, opts.LabelSelector)
		compared.FieldSelector = both(known.FieldSelector, opts.FieldSelector)
		t.read = reading{compared, decoding}
		sources, err := t.readFrom(m.client)
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			t.inputs.add("", source, source, false)
		}
	}
	options := m.replicaOptions(t, opts)
	options.Transform, options.WatchList = nil, false
	if !d.Fleet() {
		t.replica, err = tarn.NewReplica(sources[0].Source, t.store, options)
		return t, err
	}
	var sections []tarn.Section[Object]
	for _, s := range sources {
		source, err := kube.InCluster[Object](s.Cluster, s.Source)
		if err != nil {
			return nil, err
		}
		sections = append(sections, tarn.Section[Object]{Name: s.Cluster, Source: source, Prefix: kube.ClusterPrefix(s.Cluster), Independent: true})
	}
	if len(sections) == 0 {
		return nil, fmt.Errorf("mirror: %s has nothing of any cluster yet", d.dir)
	}
	t.replica, err = tarn.NewReplicaOf(sections, t.store, options)
	return t, err
}

// both combines two selectors: an object must match both.
func both(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return a + "," + b
}

func isAnnotation(path string) bool { return strings.HasPrefix(path, annotationField) }
