package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
	"github.com/tarnproject/tarn/sqlite"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// objectReader reads objects, or tables of them, for a command that shows them once.
type objectReader interface {
	objects(ctx context.Context, l location, opts metav1.ListOptions) ([]unstructured.Unstructured, error)
	table(ctx context.Context, l location, opts metav1.ListOptions, whole bool) (*metav1.Table, error)
}

// directoryReader reads them from a replica directory.
type directoryReader struct {
	directory *mirror.Directory
	moment    sqlite.Moment
	// only names the cluster to read if there are several; empty for all.
	only string
}

// foundObject is an object of a directory, with the name of its cluster if there are several.
type foundObject struct {
	mirror.Object
	cluster string
}

// list reads what is at a location, sorted as a server sorts it.
func (r *directoryReader) list(ctx context.Context, l location, opts metav1.ListOptions) (found []foundObject, err error) {
	// The printer hides the values of Secrets.
	options := mirror.Options{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector, ShowSecrets: true, AsOf: r.moment, Cluster: r.only}
	if l.namespace != "" {
		options.Namespaces = []string{l.namespace}
	}
	sources, err := r.directory.Sources(ctx, l.resource, options)
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		page, err := source.List(ctx, tarn.ListQuery{AtLeast: tarn.Latest})
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			found = append(found, foundObject{o, source.Cluster})
		}
	}
	if l.name != "" {
		found = slices.DeleteFunc(found, func(o foundObject) bool { return o.GetName() != l.name })
		if len(found) == 0 {
			return nil, apierrors.NewNotFound(l.resource.GVR.GroupResource(), l.name)
		}
	}
	slices.SortFunc(found, func(a, b foundObject) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}

func (r *directoryReader) objects(ctx context.Context, l location, opts metav1.ListOptions) ([]unstructured.Unstructured, error) {
	found, err := r.list(ctx, l, opts)
	all := make([]unstructured.Unstructured, 0, len(found))
	for _, o := range found {
		all = append(all, *o.DeepCopy()) // printers may write to it
	}
	return all, err
}

func (r *directoryReader) table(ctx context.Context, l location, opts metav1.ListOptions, _ bool) (*metav1.Table, error) {
	found, err := r.list(ctx, l, opts)
	if err != nil {
		return nil, err
	}
	columns, err := shownColumns(r.directory, l.resource, r.moment)
	if err != nil {
		return nil, err
	}
	if r.directory.Fleet() {
		columns.addCluster()
	}
	table := &metav1.Table{ColumnDefinitions: columns.definitions}
	for _, o := range found {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: columns.cells(o.Object, o.cluster), Object: runtime.RawExtension{Object: o.Object}})
	}
	return table, nil
}
