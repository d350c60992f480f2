package ctrlcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tarnproject/tarn/kube"
)

// shards returns the shard of each kind.
func (s Settings) shards(scheme *runtime.Scheme) (func(schema.GroupVersionKind) *kube.Sharding, error) {
	if len(s.Sharded) == 0 {
		return func(schema.GroupVersionKind) *kube.Sharding { return s.Sharding }, nil
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, object := range s.Sharded {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("ctrlcache.Settings.Sharded: the kind of %T is not known: %w", object, err)
		}
		kinds[gvk] = true
	}
	return func(gvk schema.GroupVersionKind) *kube.Sharding {
		if kinds[gvk] {
			return s.Sharding
		}
		return nil
	}, nil
}
