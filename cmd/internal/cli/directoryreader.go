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

// objectReader reads objects, or tables of them, as a command shows them once.
type objectReader interface {
	objects(ctx context.Context, l location, opts metav1.ListOptions) ([]unstructured.Unstructured, error)
	table(ctx context.Context, l location, opts metav1.ListOptions, whole bool) (*metav1.Table, error)
}

// directoryReader reads them from a replica directory.
type directoryReader struct {
	directory *mirror.Directory
	moment    sqlite.Moment
}

// list reads what is at a location, sorted as a server sorts it.
func (r *directoryReader) list(ctx context.Context, l location, opts metav1.ListOptions) ([]mirror.Object, error) {
	// The printer hides the values of Secrets.
	options := mirror.Options{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector, ShowSecrets: true, AsOf: r.moment}
	if l.namespace != "" {
		options.Namespaces = []string{l.namespace}
	}
	source, err := r.directory.Source(l.resource, options)
	if err != nil {
		return nil, err
	}
	page, err := source.List(ctx, tarn.ListQuery{AtLeast: tarn.Latest})
	if err != nil {
		return nil, err
	}
	found := page.Items
	if l.name != "" {
		found = slices.DeleteFunc(found, func(o mirror.Object) bool { return o.GetName() != l.name })
		if len(found) == 0 {
			return nil, apierrors.NewNotFound(l.resource.GVR.GroupResource(), l.name)
		}
	}
	slices.SortFunc(found, func(a, b mirror.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
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
	table := &metav1.Table{ColumnDefinitions: columns.definitions}
	for _, o := range found {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: columns.cells(o), Object: runtime.RawExtension{Object: o}})
	}
	return table, nil
}
