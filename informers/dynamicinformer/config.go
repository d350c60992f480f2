package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/informers/internal/roster"
	"github.com/tarnproject/tarn/kube"
)

// NewFactoryForConfig makes a factory that needs no client: its informers read the
// wire with package kube, as it arrives, on all cores, and equal parts of objects
// become one. namespace may be empty for all, tweakListOptions nil.
func NewFactoryForConfig(config *rest.Config, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) (DynamicSharedInformerFactory, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	return roster.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return roster.FromWire(recipe(gvr, namespace, defaultResync, roster.ByNamespace(), tweakListOptions), client)
	}), nil
}
