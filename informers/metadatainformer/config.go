package metadatainformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/informers/internal/roster"
	"github.com/tarnproject/tarn/kube"
)

// WithNamespace confines a factory to one namespace.
func WithNamespace(namespace string) SharedInformerOption {
	return func(s *settings) { s.namespace = namespace }
}

// WithTweakListOptions lets tweak change the options of every list and watch.
func WithTweakListOptions(tweak TweakListOptionsFunc) SharedInformerOption {
	return func(s *settings) { s.tweak = tweak }
}

// WithDisk keeps what the informers know beyond the process: see package ondisk
// for keep. The next process begins with it, and follows the server from there
// without a list. It is for factories from a config; one with a client reports
// that it cannot.
func WithDisk(keep kube.Keeper) SharedInformerOption {
	return func(s *settings) { s.keep = keep }
}

// WithShard confines all informers to shard i of n: see [kube.Shard]. It is for factories
// from a config; one with a client reports that it cannot.
func WithShard(i, n int) SharedInformerOption {
	return func(s *settings) { s.shards.SetFixed(i, n) }
}

// WithSharding confines informers to the objects of a sharding, which may change while
// they run: the informers for these resources, or all informers if none are given. A nil
// sharding means all objects.
func WithSharding(sharding *kube.Sharding, of ...schema.GroupVersionResource) SharedInformerOption {
	return func(s *settings) { s.shards.Set(sharding, of) }
}

// NewFactoryForConfig makes a factory that needs no client: its informers read the
// wire with package kube, in protobuf where the server can, as it arrives, and
// equal parts of objects become one.
func NewFactoryForConfig(config *rest.Config, defaultResync time.Duration, options ...SharedInformerOption) (SharedInformerFactory, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	s := settings{resync: defaultResync}
	for _, choose := range options {
		choose(&s)
	}
	if err := s.shards.Err(); err != nil {
		return nil, err
	}
	return roster.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return roster.FromWire(s.recipe(gvr, roster.ByNamespace()), client, s.keep, s.shards.Of(gvr))
	}), nil
}
