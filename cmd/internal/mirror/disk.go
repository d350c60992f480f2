package mirror

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
	"github.com/tarnproject/tarn/sqlite/ondisk"
)

// Disk says where and how a mirror is kept beyond the process.
//
// Reads use memory; the disk follows. After a restart a mirror at once serves what the
// previous one knew.
type Disk struct {
	// DB must stay open until the mirror is done. When the mirror starts, collections
	// that are not open are removed.
	DB *sqlite.DB
	// Secrets writes Secrets too, as they are kept: with their values only if
	// Options.ShowSecrets says so.
	Secrets bool
	// LastApplied keeps the annotations in which appliers repeat whole objects; see
	// Options.AppliedCopies. Without it the mirror does not have them at all.
	LastApplied bool
	// Without are fields that the mirror does not have: "spec.template".
	Without []string
}

// sink returns the sink of a table's copy.
func (d *Disk) sink(m *Mirror, t *Table, of kube.Origin) (tarn.Sink[Object], error) {
	r := record{
		Resource: t.resource, Table: ondisk.TableName(t.resource.GVR.GroupResource()), Columns: t.columns, Server: of.Server(),
		Namespaces: of.Namespaces, LabelSelector: of.LabelSelector, FieldSelector: of.FieldSelector,
		Without: of.Drop, Hidden: of.Transformed, Fleet: of.Cluster != nil,
	}
	opts := []ondisk.Option{ondisk.WithColumns(t.columns...), ondisk.AppliedCopies(t.appliedCopies...)}
	if d.Secrets {
		opts = append(opts, ondisk.WithSecrets())
	}
	if d.LastApplied {
		opts = append(opts, ondisk.WithLastApplied())
	}
	sink, err := ondisk.Sink[Object](d.DB, of, opts...)
	if err != nil {
		return nil, err
	}
	if !t.resource.Secret() || d.Secrets {
		m.ledger.add(r)
	}
	return sink, nil
}

// definitionsTimeout is how long a server may take to return the definitions of its custom
// resources. After a restart a mirror has their columns on disk.
const definitionsTimeout = 5 * time.Second

// definitions requests the definitions of custom resources, for the columns of their tables.
// If the server does not answer, a table has the columns that the directory was last written
// with, or the columns of every table.
func definitions(ctx context.Context, clients []rest.Interface, resources []Resource, before map[string]record) map[string][]ondisk.Column {
	ctx, cancel := context.WithTimeout(ctx, definitionsTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	turns := make(chan struct{}, 8)
	columns := map[string][]ondisk.Column{}
	for _, r := range resources {
		if r.GVR.Group == "" || scheme.Scheme.Recognizes(r.GVK()) {
			continue
		}
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			found := before[r.Name()].Columns
			for _, client := range clients {
				if defined, ok := definition(ctx, client, r); ok {
					found = defined
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			columns[r.Name()] = found
		})
	}
	asking.Wait()
	return columns
}

func definition(ctx context.Context, client rest.Interface, r Resource) ([]ondisk.Column, bool) {
	raw, err := client.Get().AbsPath("apis", "apiextensions.k8s.io", "v1", "customresourcedefinitions", r.Name()).
		SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, false
	}
	found := &unstructured.Unstructured{}
	if err := found.UnmarshalJSON(raw); err != nil {
		return nil, false
	}
	return ondisk.DefinedColumns(found, r.GVR.Version), true
}
