package cache

import "github.com/tarnproject/tarn"

// threadSafeStore is the store whose callers know the keys.
type threadSafeStore struct {
	contents
}

var _ ThreadSafeStoreWithTransaction = (*threadSafeStore)(nil)

// ThreadSafeStoreOption sets up what [NewThreadSafeStore] makes.
type ThreadSafeStoreOption func(*threadSafeStore)

// WithThreadSafeStoreMetrics shows the store's version in a metric, of the
// provider given to [SetInformerMetricsProvider] if metricsProvider is nil.
func WithThreadSafeStoreMetrics(identifier InformerNameAndResource, metricsProvider InformerMetricsProvider) ThreadSafeStoreOption {
	return func(s *threadSafeStore) {
		s.gauge = newVersionGauge(identifier, metricsProvider)
	}
}

// NewThreadSafeStore makes an empty store with these indexes. What it returns is
// a [ThreadSafeStoreWithTransaction]. The indices are not used: no other package
// can put anything into them, and the store fills its own.
func NewThreadSafeStore(indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	s := &threadSafeStore{newContents(indexers)}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

func (s *threadSafeStore) Add(key string, obj any) { s.put(key, obj) }

func (s *threadSafeStore) Update(key string, obj any) { s.put(key, obj) }

// Delete leaves the version where it was; DeleteWithObject can move it.
func (s *threadSafeStore) Delete(key string) { s.remove(key, nil) }

func (s *threadSafeStore) DeleteWithObject(key string, obj any) { s.remove(key, obj) }

func (s *threadSafeStore) Get(key string) (item any, exists bool) {
	return s.objects.Get(tarn.Key(key))
}

func (s *threadSafeStore) Replace(items map[string]any, resourceVersion string) {
	s.replace(len(items), func(yield func(tarn.Key, any) bool) {
		for key, obj := range items {
			if !yield(tarn.Key(key), obj) {
				return
			}
		}
	}, resourceVersion)
}

// Transaction makes several writes one step. The version becomes that of the
// last object.
func (s *threadSafeStore) Transaction(txns ...ThreadSafeStoreTransaction) {
	s.transact(txns)
}
