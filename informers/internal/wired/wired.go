// Package wired makes the informers that read the wire by themselves, with the
// source of package kube, instead of through a client of client-go's.
package wired

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/features"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/kube"
)

// Informer makes an informer of a collection, whose objects are like example.
//
// With a Sink in keep, the informer is kept. It has all objects if shard is nil.
func Informer(client *kube.Client, c kube.Collection, example runtime.Object, options cache.SharedIndexInformerOptions, keep kube.Keeper, shard *kube.Sharding) cache.SharedIndexInformer {
	c.Object = reflect.TypeOf(example)
	decoding := kube.SourceOptions{Drop: keep.Drop(c.Object), Shard: shard}
	source, err := kube.NewSource[any](client, c, decoding)
	if err != nil {
		return cache.NewSharedIndexInformerFromSource(refused{err}, example, options, false)
	}
	informer := cache.NewSharedIndexInformerFromSource(source, example, options, features.FeatureGates().Enabled(features.WatchListClient))
	if keep.Sink != nil {
		_ = cache.Keep(informer, func(objects cache.ObjectTraits) (tarn.Sink[any], error) { // it is ours, and not started
			decoding.Unshared = !objects.Shared
			of := client.Origin(c, decoding)
			of.Transformed, of.Transform = objects.Transformed, objects.Transform
			return keep.Open(of)
		}, keep.Strip)
	}
	return informer
}

// refused is a source that could not be made. Factories cannot return an error, so
// Health and the error handler report it.
type refused struct{ err error }

func (r refused) List(context.Context, tarn.ListQuery) (tarn.Page[any], error) {
	return tarn.Page[any]{}, r.err
}

func (r refused) Watch(context.Context, tarn.WatchQuery) (tarn.Stream[any], error) {
	return nil, r.err
}

func (r refused) Describe(any) (tarn.Meta, error) { return tarn.Meta{}, r.err }
