package cache

import (
	"time"

	upstream "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// NewFIFO is client-go's queue that keeps only the latest state of each key.
func NewFIFO(keyFunc KeyFunc) *FIFO {
	return upstream.NewFIFO(keyFunc)
}

// NewHeap is client-go's keyed priority queue.
func NewHeap(keyFn KeyFunc, lessFn LessFunc) *Heap {
	return upstream.NewHeap(keyFn, lessFn)
}

// NewInformerName reserves a name for an informer's metrics with client-go, which
// keeps one registry per process.
func NewInformerName(name string) (*InformerName, error) {
	return upstream.NewInformerName(name)
}

// ResetInformerNamesForTesting releases every name that [NewInformerName] gave.
func ResetInformerNamesForTesting() {
	upstream.ResetInformerNamesForTesting()
}

// NewIntegerResourceVersionMutationCache lays the caller's own writes over
// backingCache until it has caught up with them or ttl is over. It is client-go's:
// its interface cannot be implemented elsewhere.
func NewIntegerResourceVersionMutationCache(logger klog.Logger, backingCache Store, indexer Indexer, ttl time.Duration, includeAdds bool) MutationCache {
	return upstream.NewIntegerResourceVersionMutationCache(logger, backingCache, indexer, ttl, includeAdds)
}
