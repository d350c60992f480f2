package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// locator finds the resource of a kind, once for all sources. It runs at the first
// read, and again at each read until the resource is found: so a kind whose CRD
// does not exist yet fails like a server that is not up yet.
type locator struct {
	client *Client
	mapper meta.RESTMapper
	kind   schema.GroupVersionKind

	// sem is held during a lookup. It is a channel and not a mutex, because waiting
	// for it must end with the caller's context.
	sem        chan struct{}
	resource   schema.GroupVersionResource
	namespaced bool
}

func (l *locator) locate(ctx context.Context) (schema.GroupVersionResource, bool, error) {
	select {
	case l.sem <- struct{}{}:
		defer func() { <-l.sem }()
	case <-ctx.Done():
		return schema.GroupVersionResource{}, false, context.Cause(ctx)
	}
	if !l.resource.Empty() {
		return l.resource, l.namespaced, nil
	}
	var err error
	if l.mapper != nil {
		l.resource, l.namespaced, err = mapKind(l.mapper, l.kind)
	} else {
		l.resource, l.namespaced, err = l.client.resourceOf(ctx, l.kind)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return l.resource, l.namespaced, classify(err)
}

// lazySource is a source whose resource is looked up at the first read.
type lazySource[T any] struct {
	locator    *locator
	collection Collection
	opts       SourceOptions
	// found is set by the one goroutine that reads.
	found atomic.Pointer[Source[T]]
}

func (d *lazySource[T]) List(ctx context.Context, q tarn.ListQuery) (tarn.Page[T], error) {
	if err := d.find(ctx); err != nil {
		return tarn.Page[T]{}, err
	}
	return d.found.Load().List(ctx, q)
}

func (d *lazySource[T]) StreamList(ctx context.Context, q tarn.ListQuery, take func([]T)) (tarn.Page[T], error) {
	if err := d.find(ctx); err != nil {
		return tarn.Page[T]{}, err
	}
	return d.found.Load().StreamList(ctx, q, take)
}

func (d *lazySource[T]) Watch(ctx context.Context, q tarn.WatchQuery) (tarn.Stream[T], error) {
	if err := d.find(ctx); err != nil {
		return nil, err
	}
	return d.found.Load().Watch(ctx, q)
}

func (d *lazySource[T]) Describe(object T) (tarn.Meta, error) { return describe(object) }

// Shard implements [tarn.Sharded].
func (d *lazySource[T]) Shard() tarn.ShardReader {
	if d.opts.shard == nil {
		return nil
	}
	return d.opts.shard
}

func (d *lazySource[T]) find(ctx context.Context) error {
	if d.found.Load() != nil {
		return nil
	}
	c := d.collection
	if c.Resource.Empty() {
		resource, namespaced, err := d.locator.locate(ctx)
		if err != nil {
			return err
		}
		if c.Namespace != "" && !namespaced {
			return fmt.Errorf("%s have no namespaces: leave %q out", resource.Resource, c.Namespace)
		}
		c.Resource = resource
	}
	found, err := NewSource[T](d.locator.client, c, d.opts)
	if err == nil {
		d.found.Store(found)
	}
	return err
}

// Maintain works before the resource is found, too.
func (d *lazySource[T]) Maintain(ctx context.Context, held tarn.Copy[T]) {
	decoder := func() *wire.Decoder {
		if found := d.found.Load(); found != nil {
			return found.codec.wire
		}
		return nil
	}
	wire.Verifier[T]{Pool: d.locator.client.pool, Decoder: decoder}.Run(ctx, held)
}

// resourceOf reads the resource of a kind from the server. It reads only the one
// API version: full discovery costs a hundred times that on a cluster with many
// CRDs.
func (c *Client) resourceOf(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	group := Collection{Resource: kind.GroupVersion().WithResource("")}
	path := group.path()
	raw, err := c.readJSON(ctx, path[:len(path)-1]...)
	switch {
	case apierrors.IsNotFound(err):
		return resource, false, notServed(kind, err)
	case err != nil:
		return resource, false, fmt.Errorf("cannot read the resources of %s: %w", kind.GroupVersion(), err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return resource, false, fmt.Errorf("the list of the resources of %s is malformed: %w", kind.GroupVersion(), err)
	}
	for _, r := range list.APIResources {
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return kind.GroupVersion().WithResource(r.Name), r.Namespaced, nil
		}
	}
	return resource, false, notServed(kind, nil)
}

// mapKind uses a mapper. It resets the mapper and tries again if the kind is
// unknown.
func mapKind(mapper meta.RESTMapper, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		meta.MaybeResetRESTMapper(mapper)
		mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	switch {
	case meta.IsNoMatchError(err):
		return resource, false, notServed(kind, err)
	case err != nil:
		return resource, false, fmt.Errorf("the mapper does not find the resource of %s: %w", kind, err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func notServed(kind schema.GroupVersionKind, err error) error {
	s := fmt.Sprintf("the server does not serve %s %s: is its CRD installed, and is the version right?", kind.GroupVersion(), kind.Kind)
	if err == nil {
		return fmt.Errorf("%s", s)
	}
	return fmt.Errorf("%s: %w", s, err)
}
