package ctrlcache

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
)

// GetInformer returns the informer of an object's kind: a merged one, if the kind
// is watched in several namespaces.
func (c *ctrlCache) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	k, err := kindOf(object, c.opts.Scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, k, opts)
}

// GetInformerForKind is GetInformer for the typed form of a kind, which must be in
// the scheme.
func (c *ctrlCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	made, err := c.opts.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, kind{gvk, formOf(made)}, opts)
}

func (c *ctrlCache) informer(ctx context.Context, k kind, opts []cache.InformerGetOption) (cache.Informer, error) {
	var chosen cache.InformerGetOptions
	for _, opt := range opts {
		opt(&chosen)
	}
	e, err := c.extent(k)
	if err != nil {
		return nil, err
	}
	informers := make([]*scopedInformer, 0, len(e.configs))
	running, anyFresh := false, false
	for _, namespace := range slices.Sorted(maps.Keys(e.configs)) {
		p, started, fresh, err := c.obtain(informerKey{k, namespace}, e)
		if err != nil {
			return nil, err
		}
		informers, running, anyFresh = append(informers, p), started, anyFresh || fresh
	}
	if running && ptr.Deref(chosen.BlockUntilSynced, true) {
		for _, p := range informers {
			if err := p.awaitSync(ctx, anyFresh); err != nil {
				return nil, err
			}
		}
	}
	if len(informers) == 1 {
		return single{informers[0].informer, informers[0]}, nil
	}
	return newMergedInformer(informers), nil
}

// beyond is a version that no server reaches.
const beyond = tarn.Version("999999999999999999999999999999")

// RemoveInformer removes the informers of an object's kind. When it returns, they
// send no more requests to the server. Handlers may still be running, so a handler
// may call it.
func (c *ctrlCache) RemoveInformer(ctx context.Context, object client.Object) error {
	k, err := kindOf(object, c.opts.Scheme)
	if err != nil {
		return err
	}
	removed, running := c.take(k)
	for _, p := range removed {
		p.end(errRemoved)
	}
	for _, p := range removed {
		// A replica lets those go who wait for a version when it has stopped.
		if running && p.replica != nil {
			_ = p.replica.WaitFor(ctx, beyond)
		}
	}
	return nil
}

// take removes everything known of a kind. Its extent is removed as well: a custom
// resource may come back with another scope.
func (c *ctrlCache) take(k kind) (removed []*scopedInformer, running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, p := range c.informers {
		if at.kind == k {
			removed = append(removed, p)
			c.wasRewound = c.wasRewound || p.rewinds() > 0
			delete(c.informers, at)
		}
	}
	delete(c.extents, k)
	return removed, c.ctx != nil
}

// IndexField adds an index to all informers of an object's kind. A field selector
// for equality with this field then finds its objects without reading the others.
func (c *ctrlCache) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return informer.AddIndexers(toolscache.Indexers{indexName(field): indexFunc(values)})
}

func indexName(field string) string { return "field:" + field }

// everyNamespace stands in index values for any namespace; no namespace has such
// a name.
const everyNamespace = "__all_namespaces"

// indexValue is what an object with this value in this namespace is found by;
// without a namespace, in any. Name and values are controller-runtime's: they can
// be seen through the informer.
func indexValue(namespace, value string) string {
	if namespace == "" {
		namespace = everyNamespace
	}
	return namespace + "/" + value
}

func indexFunc(values client.IndexerFunc) toolscache.IndexFunc {
	return func(object any) ([]string, error) {
		o, ok := object.(client.Object)
		if !ok {
			return nil, fmt.Errorf("a %T cannot be indexed: it is not a client.Object", object)
		}
		var keys []string
		for _, value := range values(o) {
			keys = append(keys, indexValue("", value))
			if namespace := o.GetNamespace(); namespace != "" {
				keys = append(keys, indexValue(namespace, value))
			}
		}
		return keys, nil
	}
}
