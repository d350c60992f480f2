package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tarnproject/tarn/cmd/internal/mirror"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	acceptObjects = "application/json"
	// acceptTable requests the columns that kubectl shows; servers without them
	// answer with objects.
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	// pageSize is kubectl's.
	pageSize = 500
)

// reader reads objects, or the server's tables of them, as the server sends them.
type reader struct{ client rest.Interface }

func newReader(cfg *rest.Config) (*reader, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath = "/"
	cfg.ContentConfig = rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &reader{client}, nil
}

// location is where objects are: a collection, or a single one if it has a name.
type location struct {
	resource        mirror.Resource
	namespace, name string
}

func (l location) path() []string {
	gvr := l.resource.GVR
	path := []string{"api", gvr.Version}
	if gvr.Group != "" {
		path = []string{"apis", gvr.Group, gvr.Version}
	}
	if l.resource.Namespaced && l.namespace != "" {
		path = append(path, "namespaces", l.namespace)
	}
	path = append(path, gvr.Resource)
	if l.name != "" {
		path = append(path, l.name)
	}
	return path
}

// failed adds where the object was looked for.
func (l location) failed(err error) error {
	if !apierrors.IsNotFound(err) || l.name == "" || !l.resource.Namespaced {
		return err
	}
	return fmt.Errorf("%w in namespace %q", err, l.namespace)
}

func (r *reader) request(l location, accept string, opts metav1.ListOptions) *rest.Request {
	request := r.client.Get().AbsPath(l.path()...).SetHeader("Accept", accept)
	if l.name == "" {
		request.VersionedParams(&opts, metav1.ParameterCodec)
	}
	return request
}

// objects reads all objects, page by page.
func (r *reader) objects(ctx context.Context, l location, opts metav1.ListOptions) ([]unstructured.Unstructured, error) {
	opts.Limit = pageSize
	var all []unstructured.Unstructured
	for {
		raw, err := body(r.request(l, acceptObjects, opts).Do(ctx))
		if err != nil {
			return nil, err
		}
		page, list, err := parseObjects(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if opts.Continue = list.Continue; opts.Continue == "" {
			return all, nil
		}
	}
}

// parseObjects parses an object or a list.
func parseObjects(raw []byte) (objects []unstructured.Unstructured, list metav1.ListMeta, err error) {
	object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, raw)
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return []unstructured.Unstructured{*object}, list, nil
	case *unstructured.UnstructuredList:
		return object.Items, metav1.ListMeta{ResourceVersion: object.GetResourceVersion(), Continue: object.GetContinue()}, nil
	}
	if runtime.IsMissingKind(err) {
		// The error repeats the whole answer, which may be secret.
		err = errors.New("it has no kind")
	}
	return nil, list, fmt.Errorf("the server's answer cannot be read: %w", err)
}

// table reads the server's table of all objects, page by page. If whole is true it has the
// objects, otherwise only their metadata.
func (r *reader) table(ctx context.Context, l location, opts metav1.ListOptions, whole bool) (*metav1.Table, error) {
	opts.Limit = pageSize
	var all *metav1.Table
	for {
		page, err := r.tablePage(ctx, l, opts, whole)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = page
		} else {
			all.Rows = append(all.Rows, page.Rows...)
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return all, nil
		}
	}
}

func (r *reader) tablePage(ctx context.Context, l location, opts metav1.ListOptions, whole bool) (*metav1.Table, error) {
	request := r.request(l, acceptTable, opts)
	if whole {
		request.Param("includeObject", string(metav1.IncludeObject))
	}
	raw, err := body(request.Do(ctx))
	if err != nil {
		return nil, err
	}
	return parseTable(raw)
}

// body returns the server's answer, or the error in it, which only Error reads from the body.
func body(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// parseTable parses a table with the object of each row, or makes a table if the server sent
// objects instead.
func parseTable(raw []byte) (*metav1.Table, error) {
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	if table.Kind != "Table" {
		return plainTable(raw)
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if len(row.Object.Raw) == 0 {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(row.Object.Raw, &object.Object); err != nil {
			return nil, fmt.Errorf("the server's table cannot be read: row %d: %w", i+1, err)
		}
		row.Object.Object, row.Object.Raw = object, nil
	}
	return &table, nil
}

func plainTable(raw []byte) (*metav1.Table, error) {
	objects, list, err := parseObjects(raw)
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{
		ListMeta: list,
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name"}, {Name: "Age", Type: "string"},
		},
	}
	for _, object := range objects {
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{object.GetName(), age(object.GetCreationTimestamp().Time)},
			Object: runtime.RawExtension{Object: &object},
		})
	}
	return table, nil
}

// age formats the time since a moment as kubectl does.
func age(since time.Time) string { return ageAt(since, time.Time{}) }

// ageAt is the age at a time, zero for now.
func ageAt(since, at time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	if at.IsZero() {
		at = time.Now()
	}
	return duration.HumanDuration(at.Sub(since))
}
