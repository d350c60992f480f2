package ctrlcache

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/features"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tarnproject/tarn"
	tarncache "github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/kube"
)

// newScopedInformer makes the informer of a place: by the user's constructor if there is
// one, else one of ours.
func (c *ctrlCache) newScopedInformer(at informerKey, e *extent) (*scopedInformer, error) {
	config := e.configs[at.namespace]
	example, err := at.example(c.opts.Scheme)
	if err != nil {
		return nil, err
	}
	namespace := at.namespace
	if e.namespaced && namespace == "" {
		namespace = onlyNamespace(config.FieldSelector)
	}
	collection := kube.Collection{
		Resource: e.resource, Kind: at.gvk, Object: reflect.TypeOf(example), Namespace: namespace,
		LabelSelector: selectorText(config.LabelSelector), FieldSelector: selectorText(config.FieldSelector),
	}
	server, err := c.serverOfOne()
	if err != nil {
		return nil, err
	}
	var informer toolscache.SharedIndexInformer
	if c.opts.NewInformer == nil {
		informer, err = c.ownInformer(server, at, collection, config, example)
	} else {
		informer, err = c.usersInformer(at, collection, config, example)
	}
	if err != nil {
		return nil, err
	}
	p := newScopedInformer(at, e, informer, example)
	if c.opts.NewInformer == nil {
		p.sharding = c.shardOf(at.gvk)
	}
	if handler := c.opts.DefaultWatchErrorHandler; handler != nil {
		if err := informer.SetWatchErrorHandlerWithContext(p.detachable(handler)); err != nil {
			return nil, fmt.Errorf("the informer of %v does not take the watch error handler: %w", at, err)
		}
	}
	collection.Object = reflect.TypeFor[*metav1.PartialObjectMetadata]()
	p.current = func(ctx context.Context, least tarn.Version) (map[tarn.Key]tarn.Version, tarn.Version, error) {
		source, err := kube.NewSource[any](server, collection, kube.SourceOptions{Unshared: true, Shard: c.shardOf(at.gvk)})
		if err != nil {
			return nil, "", err
		}
		return current(ctx, source, least)
	}
	return p, nil
}

// serverOfOne is a client for one informer: as in controller-runtime's cache, the config's limit
// on the rate of requests holds for each informer, and does not make many wait for each other.
func (c *ctrlCache) serverOfOne() (*kube.Client, error) {
	return kube.NewClient(c.cfg, kube.WithHTTPClient(c.opts.HTTPClient), kube.WithPool(c.server.Pool()))
}

// onlyNamespace is the namespace that a selector names: a request by path instead
// needs permission for that namespace only.
func onlyNamespace(selector fields.Selector) string {
	if selector == nil {
		return ""
	}
	namespace, _ := selector.RequiresExactMatch(namespaceField)
	return namespace
}

func byNamespace() toolscache.Indexers {
	return toolscache.Indexers{toolscache.NamespaceIndex: tarncache.MetaNamespaceIndexFunc}
}

// ownInformer is over the source that shares structure between objects.
//
// A transform may write to what it is given, so its objects are decoded each by
// itself; the informer shares them by value afterwards. Removing the managed
// fields, the most common transform, needs none: they are skipped on the wire.
func (c *ctrlCache) ownInformer(server *kube.Client, at informerKey, collection kube.Collection, config cache.Config, example client.Object) (toolscache.SharedIndexInformer, error) {
	options := kube.SourceOptions{SetKind: at.form == metadataOnly, Shard: c.shardOf(at.gvk)}
	transform := config.Transform
	if strips(transform) {
		transform, options.Drop = nil, []string{"metadata.managedFields"}
	}
	options.Drop = append(options.Drop, c.keep.Drop(collection.Object)...)
	options.Unshared = transform != nil
	bookmarks := ptr.Deref(config.EnableWatchBookmarks, true)
	if !bookmarks {
		collection.Tweak = func(o *metav1.ListOptions) { o.AllowWatchBookmarks = false }
	}
	source, err := kube.NewSource[any](server, collection, options)
	if err != nil {
		return nil, err
	}
	informer := tarncache.NewSharedIndexInformerFromSource(source, example, toolscache.SharedIndexInformerOptions{
		ResyncPeriod: resyncPeriod(config), Indexers: byNamespace(), ObjectDescription: at.String(),
	}, bookmarks && features.FeatureGates().Enabled(features.WatchListClient))
	if c.keep.Sink != nil {
		if err := c.kept(informer, server, at, collection, options); err != nil {
			return nil, err
		}
	}
	return informer, informer.SetTransform(transform)
}

// usersInformer is by the constructor in the options, over client-go's clients.
func (c *ctrlCache) usersInformer(at informerKey, collection kube.Collection, config cache.Config, example client.Object) (toolscache.SharedIndexInformer, error) {
	requests, err := newEndpoint(c.cfg, &c.opts, at.kind, collection.Resource, collection.Namespace)
	if err != nil {
		return nil, err
	}
	informer := c.opts.NewInformer(selected(requests, config), example, resyncPeriod(config), byNamespace())
	if err := informer.SetTransform(config.Transform); err != nil {
		return nil, fmt.Errorf("the informer of %v does not take the transform: %w", at, err)
	}
	return informer, nil
}
