package cli

import (
	"slices"
	"strings"

	"github.com/tarnproject/tarn/fieldpath"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// order sorts by a field; without a field it keeps the order.
type order struct{ path *fieldpath.Path }

func newOrder(field string) (order, error) {
	if field == "" {
		return order{}, nil
	}
	path, err := fieldpath.Parse(strings.TrimSuffix(strings.TrimPrefix(field, "{"), "}"))
	if err != nil {
		return order{}, usagef("--sort-by %s: %v; write it as .metadata.creationTimestamp", field, err)
	}
	return order{path}, nil
}

func (o order) sort(objects []unstructured.Unstructured) {
	if o.path == nil {
		return
	}
	slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int { return o.compare(&a, &b) })
}

func (o order) sortRows(rows []metav1.TableRow) {
	if o.path == nil {
		return
	}
	slices.SortStableFunc(rows, func(a, b metav1.TableRow) int { return o.compare(a.Object.Object, b.Object.Object) })
}

// compare also sorts sizes such as 900Mi and 1Gi by their value, although they are strings in
// an object.
func (o order) compare(a, b any) int {
	x, _ := o.path.First(a)
	y, _ := o.path.First(b)
	if x.Kind() == fieldpath.String && y.Kind() == fieldpath.String {
		p, err1 := resource.ParseQuantity(x.String())
		q, err2 := resource.ParseQuantity(y.String())
		if err1 == nil && err2 == nil {
			return p.Cmp(q)
		}
	}
	return x.Compare(y)
}
