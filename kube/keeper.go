package kube

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/kube/wire"
)

// A Keeper is to informers what [Keep] is to replicas: it is asked for the store of
// each informer of a factory, or of a cache, when that starts. The zero Keeper keeps
// nothing.
type Keeper struct {
	// Store is given the store in memory, and what it is a copy of. An error leaves
	// the informer with that store, and is told where all its failures are.
	Store func(of Origin, front tarn.ReadStore[any]) (tarn.ReadStore[any], error)
	// Fields, by their path in JSON, and Annotations are not to be kept, and so are
	// left out of the informers' objects too: what is only left out of a file would
	// come and go with restarts.
	Fields, Annotations []string
}

// Open is Store, with what is left out as part of what the copy is of.
func (k Keeper) Open(of Origin, front tarn.ReadStore[any]) (tarn.ReadStore[any], error) {
	for _, name := range slices.Sorted(slices.Values(k.Annotations)) {
		of.Drop = append(of.Drop, annotationPath(name))
	}
	return k.Store(of, front)
}

// Strip is an object without the annotations that are not to be kept.
func (k Keeper) Strip(object any) any { return WithoutAnnotations(object, k.Annotations...) }

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
	o.Drop, o.decoding = slices.Sorted(slices.Values(opts.Drop)), opts
	return o
}
