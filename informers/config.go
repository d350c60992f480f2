package informers

import (
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/wired"
	"github.com/tarnproject/tarn/kube"
)

// NewSharedInformerFactoryForConfig makes a factory that needs no clientset: its
// informers read the wire with package kube, in protobuf, as it arrives, on all
// cores, and equal parts of objects become one. It is used like any other.
//
// An informer that a caller passes to InformerFor is given a clientset of the
// same config.
func NewSharedInformerFactoryForConfig(config *rest.Config, defaultResync time.Duration, options ...SharedInformerOption) (SharedInformerFactory, error) {
	wire, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	throughWire := func(s *settings) { s.wire = wire }
	var shards error
	check := func(s *settings) { shards = s.shards.Err() }
	f := NewSharedInformerFactoryWithOptions(client, defaultResync, slices.Concat(options, []SharedInformerOption{throughWire, check})...)
	if shards != nil {
		return nil, shards
	}
	return f, nil
}

// fromWire makes the informer of a collection with package kube.
func (r recipe) fromWire(f *factory, c collection, resync time.Duration) cache.SharedIndexInformer {
	namespace := f.namespace
	if c.clusterWide {
		namespace = ""
	}
	from := kube.Collection{Resource: r.resource, Namespace: namespace, Tweak: r.tweak}
	if kinds, _, err := scheme.Scheme.ObjectKinds(r.object); err == nil {
		from.Kind = kinds[0]
	}
	return wired.Informer(f.wire, from, r.object, r.options(resync), f.keep, f.shards.Of(c.object))
}
