package informers

import (
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers/internal/roster"
	"github.com/tarnproject/tarn/kube"
)

// settings is all that can be chosen about a factory. It is fixed once the
// factory has been made, and so is read without a lock.
type settings struct {
	client    kubernetes.Interface
	wire      *kube.Client // nil if informers go through client
	namespace string
	tweak     internalinterfaces.TweakListOptionsFunc
	resync    time.Duration
	resyncOf  map[reflect.Type]time.Duration
	transform cache.TransformFunc
	name      *cache.InformerName
	unshared  bool
	keep      kube.Keeper
	shards    roster.Shards[reflect.Type]
}

// resyncFor is the resync period of informers for objects of type t.
func (s *settings) resyncFor(t reflect.Type) time.Duration {
	if d, ok := s.resyncOf[t]; ok {
		return d
	}
	return s.resync
}

// SharedInformerOption chooses something about a factory that
// [NewSharedInformerFactoryWithOptions] makes. If two options conflict, the later one
// applies.
//
// This is the one type that is not client-go's, whose options are functions of
// its private factory.
type SharedInformerOption func(*settings)

// WithCustomResyncConfig gives some types, each named by any object of it, a
// resync period other than the factory's.
func WithCustomResyncConfig(resyncConfig map[metav1.Object]time.Duration) SharedInformerOption {
	periods := make(map[reflect.Type]time.Duration, len(resyncConfig))
	for object, period := range resyncConfig {
		periods[reflect.TypeOf(object)] = period
	}
	return func(s *settings) { maps.Copy(s.resyncOf, periods) }
}

// WithTweakListOptions lets tweak change the options of every list and watch, for example to
// select by label. Informers given to InformerFor make their own requests and are not affected.
func WithTweakListOptions(tweak internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(s *settings) { s.tweak = tweak }
}

// WithNamespace confines the factory to one namespace. Collections that have no
// namespaces are watched whole nevertheless.
func WithNamespace(namespace string) SharedInformerOption {
	return func(s *settings) { s.namespace = namespace }
}

// WithTransform lets transform change every object before it is stored,
// whichever informer of the factory it comes through.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(s *settings) { s.transform = transform }
}

// WithInformerName names the factory's informers in metrics. The factory owns
// the name from then on: Shutdown releases it.
func WithInformerName(name *cache.InformerName) SharedInformerOption {
	return func(s *settings) { s.name = name }
}

// WithSharing sets whether informers hold equal parts of their objects once, which
// is the default: see [cache.ShareStructure].
func WithSharing(on bool) SharedInformerOption {
	return func(s *settings) { s.unshared = !on }
}

// WithDisk keeps the content of the informers on disk: see package ondisk for keep. The
// next process begins with that content, and follows the server from there without a
// list. It is for [NewSharedInformerFactoryForConfig]; a factory with a client reports
// that it cannot. Informers given to InformerFor are not affected.
func WithDisk(keep kube.Keeper) SharedInformerOption {
	return func(s *settings) { s.keep = keep }
}

// WithShard confines all informers to shard i of n: see [kube.Shard]. It is for
// [NewSharedInformerFactoryForConfig]; a factory with a client reports that it cannot.
func WithShard(i, n int) SharedInformerOption {
	return func(s *settings) { s.shards.SetFixed(i, n) }
}

// WithSharding confines informers to the objects of a sharding, which may change while
// they run: the informers for the types of these objects, or all informers if none are
// given. A nil sharding means all objects. Handlers learn of moved objects if they are a
// [cache.MovedHandler].
func WithSharding(sharding *kube.Sharding, of ...metav1.Object) SharedInformerOption {
	types := make([]reflect.Type, len(of))
	for i, object := range of {
		types[i] = reflect.TypeOf(object)
	}
	return func(s *settings) { s.shards.Set(sharding, types) }
}
