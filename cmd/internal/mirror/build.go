package mirror

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/features"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// check rejects invalid requests before anything is started.
func check(resources []Resource, opts Options) error {
	if len(resources) == 0 {
		return errors.New("mirror: no resources to copy: name some, as Catalog.Find or Catalog.All give them")
	}
	seen := map[string]bool{}
	for _, r := range resources {
		switch {
		case seen[r.Name()]:
			return fmt.Errorf("mirror: %s is asked for twice", r.Name())
		case len(r.Verbs) > 0 && !r.copyable():
			return fmt.Errorf("mirror: %s cannot be copied: the server offers no list and watch of it, only %s", r.Name(), strings.Join(r.Verbs, ", "))
		}
		seen[r.Name()] = true
	}
	if _, err := labels.Parse(opts.LabelSelector); err != nil {
		return fmt.Errorf("mirror: the label selector %q makes no sense: %w", opts.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(opts.FieldSelector); err != nil {
		return fmt.Errorf("mirror: the field selector %q makes no sense: %w", opts.FieldSelector, err)
	}
	if opts.Disk != nil && opts.Disk.DB == nil {
		return errors.New("mirror: a disk without a database: sqlite.Open gives one")
	}
	if len(opts.Namespaces) > 1 && slices.Contains(opts.Namespaces, metav1.NamespaceAll) {
		return fmt.Errorf("mirror: %q names all namespaces beside single ones; name either", opts.Namespaces)
	}
	return nil
}

// newTable makes the table of a resource. It does not run yet.
func (m *Mirror) newTable(r Resource, columns []ondisk.Column, opts Options) (*Table, error) {
	t := &Table{resource: r, store: memory.New[Object](), columns: columns, namespaces: narrowed(r, opts), appliedCopies: opts.appliedCopies()}
	t.read = reading{opts, t.decoding(opts)}
	sections, collections, err := m.sectionsOf(t)
	if err != nil {
		return nil, err
	}
	options := m.replicaOptions(t, opts)
	if options.Sinks, err = m.sinks(t, collections, opts); err != nil {
		return nil, err
	}
	if len(sections) == 1 && !sections[0].Independent {
		t.replica, err = tarn.NewReplica(sections[0].Source, t.store, options)
	} else {
		t.replica, err = tarn.NewReplicaOf(sections, t.store, options)
	}
	return t, err
}

// sinks returns the sinks of a table's copy.
func (m *Mirror) sinks(t *Table, collections []kube.Collection, opts Options) (all []tarn.Sink[Object], err error) {
	of := kube.OriginOf(m.client, collections...)
	if of.Drop = t.leftOut(t.read.decoding, opts); t.hides {
		of.Transformed, of.Transform = true, anyTransform(t.transform)
	}
	if m.members != nil {
		of.Namespaces, of.Cluster = t.namespaces, m.members.client
	}
	if opts.Disk != nil {
		sink, err := opts.Disk.sink(m, t, of)
		if err != nil {
			return nil, err
		}
		all = append(all, sink)
	}
	if opts.Feed != nil {
		sink, err := opts.Feed.Sink(of, t.columns)
		if err != nil {
			return nil, err
		}
		all = append(all, sink)
	}
	return all, nil
}

// sectionsOf makes the sections of a table: one for each namespace, or for each cluster.
func (m *Mirror) sectionsOf(t *Table) (sections []tarn.Section[Object], collections []kube.Collection, err error) {
	if m.members != nil {
		for _, member := range m.members.all() {
			section, err := t.join(member)
			if err != nil {
				return nil, nil, err
			}
			sections = append(sections, section)
		}
		for _, source := range t.Sources() {
			collections = append(collections, source.Collection())
		}
		return sections, collections, nil
	}
	sources, err := t.readFrom(m.client)
	if err != nil {
		return nil, nil, err
	}
	for _, source := range sources {
		c := source.Collection()
		sections = append(sections, tarn.Section[Object]{
			Name: c.Namespace, Source: t.inputs.add("", source, source, t.hides), Prefix: kube.KeyPrefix(c.Namespace),
		})
		collections = append(collections, c)
	}
	return sections, collections, nil
}

// anyTransform is a transform of objects of any type.
func anyTransform(transform func(Object) (Object, error)) func(any) (any, error) {
	return func(object any) (any, error) {
		o, ok := object.(Object)
		if !ok {
			return nil, fmt.Errorf("mirror: a %T cannot be transformed", object)
		}
		return transform(o)
	}
}

// decoding says which parts of objects are left out and how, and sets the table's transform.
func (t *Table) decoding(opts Options) kube.SourceOptions {
	decoding := kube.SourceOptions{}
	if !opts.KeepManagedFields {
		decoding.Drop = []string{"metadata.managedFields"}
	}
	if opts.Disk != nil {
		decoding.Drop = append(decoding.Drop, opts.Disk.Without...)
	}
	if opts.Feed != nil {
		decoding.Drop = append(decoding.Drop, opts.Feed.Without...)
	}
	t.hides = t.resource.Secret() && !opts.ShowSecrets
	decoding.Unshared = t.hides
	t.transform = t.transformOf(t.unwritten(opts), t.hides)
	return decoding
}

// unwritten returns the annotations that the table leaves out because they must not be on
// disk, or in an engine.
func (t *Table) unwritten(opts Options) []string {
	if opts.Disk != nil && !opts.Disk.LastApplied || opts.Feed != nil && !opts.Feed.LastApplied {
		return t.appliedCopies
	}
	return nil
}

// leftOut names everything that is left out.
func (t *Table) leftOut(decoding kube.SourceOptions, opts Options) []string {
	all := slices.Sorted(slices.Values(decoding.Drop))
	for _, name := range slices.Sorted(slices.Values(t.unwritten(opts))) {
		all = append(all, annotationPath(name))
	}
	return all
}

// annotationPath is the path of an annotation that is left out, and annotationsIn are the
// annotations among such paths.
func annotationPath(name string) string { return annotationField + name + "']" }

const annotationField = "metadata.annotations['"

func annotationsIn(leftOut []string) (names []string) {
	for _, path := range leftOut {
		if name, ok := strings.CutPrefix(path, annotationField); ok {
			names = append(names, strings.TrimSuffix(name, "']"))
		}
	}
	return names
}

// readFrom makes sources of the table's resource at a server, one for each namespace.
func (t *Table) readFrom(client *kube.Client) (sources []*kube.Source[Object], err error) {
	kind := t.resource.GVK()
	if t.resource.Kind == "" {
		kind = schema.GroupVersionKind{} // any
	}
	for _, namespace := range namespacesOf(t.resource, t.read.opts) {
		source, err := kube.NewSource[Object](client, kube.Collection{
			Resource: t.resource.GVR, Kind: kind, Object: reflect.TypeFor[Object](), Namespace: namespace,
			LabelSelector: t.read.opts.LabelSelector, FieldSelector: t.read.opts.FieldSelector,
		}, t.read.decoding)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// narrowed returns the requested namespaces of a table, none if it has all.
func narrowed(r Resource, opts Options) []string {
	return slices.DeleteFunc(namespacesOf(r, opts), func(n string) bool { return n == metav1.NamespaceAll })
}

// namespacesOf returns the namespaces that a table reads one by one. A single empty one
// stands for all, or for a resource without namespaces.
func namespacesOf(r Resource, opts Options) []string {
	if !r.Namespaced || len(opts.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return slices.Compact(slices.Sorted(slices.Values(opts.Namespaces)))
}

func (m *Mirror) replicaOptions(t *Table, opts Options) tarn.Options[Object] {
	name := t.resource.Name()
	transform := t.transform
	if t.hides {
		transform = thenShare(t.transform, m.client.Pool())
	}
	return tarn.Options[Object]{
		Name:         name,
		Transform:    transform,
		SilenceLimit: opts.SilenceLimit,
		WatchList:    features.FeatureGates().Enabled(features.WatchListClient),
		Logger:       opts.Logger,
		OnError: func(ctx context.Context, err error) {
			if m.members == nil { // else Health says which cluster it is
				m.problems.met(time.Now(), t.resource, diagnose(err))
			}
			if opts.OnError != nil {
				opts.OnError(name, err)
				return
			}
			opts.Logger.WarnContext(ctx, "the copy is not following the server", "table", name, "err", detailOf(err))
		},
		OnBad: func(ctx context.Context, bad tarn.BadObject) {
			m.problems.met(time.Now(), t.resource, diagnoseBad(bad))
			if opts.OnBad != nil {
				opts.OnBad(name, bad)
				return
			}
			opts.Logger.ErrorContext(ctx, "an object could not be taken; its last good state stays", "table", name, "key", bad.Key, "err", detailOf(bad.Err))
		},
	}
}
