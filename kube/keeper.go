package kube

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// A Keeper is to informers what [Sink] is to replicas: it is asked for the sink of each
// informer of a factory, or of a cache, when that starts. The zero Keeper keeps nothing.
type Keeper struct {
	// Sink is given what an informer has a copy of. After an error the informer runs
	// without, and the error is where all its failures are.
	Sink func(of Origin) (tarn.Sink[any], error)
	// Fields, by their path in JSON, and Annotations are not to be kept, and so are
	// left out of the informers' objects too: what is only left out of a file would
	// come and go with restarts.
	Fields, Annotations []string
}

// Open is Sink, with what is left out as part of what the copy is of.
func (k Keeper) Open(of Origin) (tarn.Sink[any], error) {
	if !of.sharding.keepable() {
		return nil, errKeptShard
	}
	for _, name := range slices.Sorted(slices.Values(k.Annotations)) {
		of.Drop = append(of.Drop, annotationPath(name))
	}
	return k.Sink(of)
}

// Strip is an object without the annotations that are not to be kept.
func (k Keeper) Strip(object any) any { return StripAnnotations(object, k.Annotations...) }

// Drop are the fields that are not to be kept, of those that a type has: informers
// of several types have one Keeper.
func (k Keeper) Drop(object reflect.Type) (paths []string) {
	for _, path := range k.Fields {
		if _, err := wire.NewDecoder(object, wire.Options{Drop: []string{path}}); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// Origin says what an informer's copy of a collection is of, for a [Keeper]. Of the
// options, it tells which fields are left out and how objects that are read again
// are made.
func (c *Client) Origin(of Collection, opts SourceOptions) Origin {
	asked := of.options(metav1.ListOptions{})
	o := OriginOf(c, of)
	o.LabelSelector, o.FieldSelector = asked.LabelSelector, asked.FieldSelector
	o.sharding = opts.Shard
	o.Drop, o.decoding = slices.Sorted(slices.Values(opts.Drop)), opts
	return o
}
