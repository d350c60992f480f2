package roster

import (
	"errors"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tarnproject/tarn/kube"
)

// Shards says which shard informers have, by what names them: a resource or a type.
type Shards[N comparable] struct {
	all *kube.Sharding
	by  map[N]*kube.Sharding
	err error
}

// Set gives the named informers a shard, or all if none is named.
func (s *Shards[N]) Set(sharding *kube.Sharding, names []N) {
	if len(names) == 0 {
		s.all = sharding
	}
	for _, name := range names {
		if s.by == nil {
			s.by = map[N]*kube.Sharding{}
		}
		s.by[name] = sharding
	}
}

// SetFixed is Set for shard i of n. Err returns its error.
func (s *Shards[N]) SetFixed(i, n int) {
	sharding, err := kube.FixedShard(i, n)
	s.all, s.err = sharding, errors.Join(s.err, err)
}

// Of is the shard of an informer; nil if it has all objects.
func (s *Shards[N]) Of(name N) *kube.Sharding {
	if sharding, ok := s.by[name]; ok {
		return sharding
	}
	return s.all
}

// Err says what is wrong with the shards.
func (s *Shards[N]) Err() error { return s.err }

// ReportWhole says that the informers of a factory with a client have all objects. Its
// constructor cannot return an error.
func (s *Shards[N]) ReportWhole() {
	if s.all != nil || len(s.by) > 0 || s.err != nil {
		utilruntime.HandleError(errors.Join(s.err, errors.New("shards have no effect on a factory that was made with a client: its informers have all objects; make the factory from a rest.Config")))
	}
}
