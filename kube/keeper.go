package kube

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// A Keeper is to informers what [Sink] is to replicas: it returns the sink of each
// informer of a factory, or of a cache, when the informer starts. The zero Keeper keeps
// nothing.
type Keeper struct {
	// Sink gets what an informer has a copy of, and returns the sink for it. After an
	// error the informer runs without a sink, and reports the error like its other
	// failures.
	Sink func(of Origin) (tarn.Sink[any], error)
	// Fields, by their path in JSON, and Annotations are not kept. They are left out of
	// the informers' objects too: if they were left out of a file only, they would appear
	// and disappear with restarts.
	Fields, Annotations []string
}

// Open calls Sink. The fields and annotations that are left out are part of the origin
// that it gets.
func (k Keeper) Open(of Origin) (tarn.Sink[any], error) {
	if !of.sharding.keepable() {
		return nil, errKeptShard
	}
	for _, name := range slices.Sorted(slices.Values(k.Annotations)) {
		of.Drop = append(of.Drop, annotationPath(name))
	}
	return k.Sink(of)
}

// Strip returns an object without the annotations that are not kept.
func (k Keeper) Strip(object any) any { return StripAnnotations(object, k.Annotations...) }

// Drop returns the fields of a type that are not kept: informers of several types have
// one Keeper.
func (k Keeper) Drop(object reflect.Type) (paths []string) {
	for _, path := range k.Fields {
		if _, err := wire.NewDecoder(object, wire.Options{Drop: []string{path}}); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// Origin describes what an informer has a copy of, for a [Keeper]. Of the options it uses
// the dropped fields, and how to decode objects that are read from disk.
func (c *Client) Origin(of Collection, opts SourceOptions) Origin {
	asked := of.options(metav1.ListOptions{}, false)
	o := OriginOf(c, of)
	o.LabelSelector, o.FieldSelector = asked.LabelSelector, asked.FieldSelector
	o.sharding = opts.Shard
	o.Drop, o.decoding = slices.Sorted(slices.Values(opts.Drop)), opts
	return o
}
