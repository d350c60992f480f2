package informers

import (
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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
