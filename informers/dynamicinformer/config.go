package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/informers/internal/roster"
	"github.com/tarnproject/tarn/kube"
)

// Option chooses something about a factory that [NewFactoryForConfig] makes.
type Option func(*settings)

type settings struct {
	keep   kube.Keeper
	shards roster.Shards[schema.GroupVersionResource]
}

// WithDisk keeps what the informers know beyond the process: see package ondisk
// for keep. The next process begins with it, and follows the server from there
// without a list.
func WithDisk(keep kube.Keeper) Option { return func(s *settings) { s.keep = keep } }

// WithShard confines all informers to shard i of n: see [kube.Shard].
func WithShard(i, n int) Option { return func(s *settings) { s.shards.SetFixed(i, n) } }

// WithSharding confines informers to the objects of a sharding, which may change while
// they run: the informers for these resources, or all informers if none are given. A nil
// sharding means all objects.
func WithSharding(sharding *kube.Sharding, of ...schema.GroupVersionResource) Option {
	return func(s *settings) { s.shards.Set(sharding, of) }
}

// NewFactoryForConfig makes a factory that needs no client: its informers read the
// wire with package kube, as it arrives, on all cores, and equal parts of objects
// become one. namespace may be empty for all, tweakListOptions nil.
func NewFactoryForConfig(config *rest.Config, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc, options ...Option) (DynamicSharedInformerFactory, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	var s settings
	for _, choose := range options {
		choose(&s)
	}
	if err := s.shards.Err(); err != nil {
		return nil, err
	}
	return roster.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return roster.FromWire(recipe(gvr, namespace, defaultResync, roster.ByNamespace(), tweakListOptions), client, s.keep, s.shards.Of(gvr))
	}), nil
}
