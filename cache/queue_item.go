package cache

import (
	"time"

	"k8s.io/klog/v2"
)

// queueKey gives the key of what goes through a queue: an object, the marker of
// one whose deletion was missed, or the deltas about one.
func queueKey(keyFunc KeyFunc, obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		if len(deltas) == 0 {
			return "", KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = deltas[len(deltas)-1]
	}
	if delta, ok := obj.(Delta); ok {
		obj = delta.Object
	}
	if gone, ok := obj.(DeletedFinalStateUnknown); ok {
		return gone.Key, nil
	}
	return keyFunc(obj)
}

// isTombstone says that an object represents a missed deletion. It comes from the
// consumer, so it is transformed already.
func isTombstone(obj any) bool {
	_, ok := obj.(DeletedFinalStateUnknown)
	return ok
}

// lookUp returns the consumer's object under a key, nil if its keys and objects
// disagree: a deletion without its object is better than none.
func lookUp(logger klog.Logger, known KeyListerGetter, key string) any {
	object, exists, err := known.GetByKey(key)
	if err != nil || !exists {
		logger.Error(err, "A key that the store lists cannot be read from it; its deletion is delivered without the object", "key", key)
		return nil
	}
	return object
}

const (
	// A consumer is slow when it takes slowTime per change, for a batch slowBatch
	// in all, while more than slowDepth entries wait.
	slowDepth = 10
	slowTime  = 100 * time.Millisecond
	slowBatch = time.Second
)

// warnIfSlow logs a consumer that has been busy with some deltas since start while
// depth others waited.
func warnIfSlow(logger klog.Logger, start time.Time, keyFunc KeyFunc, deltas []Delta, depth int) {
	took := time.Since(start)
	if depth <= slowDepth || took < min(time.Duration(len(deltas))*slowTime, slowBatch) {
		return
	}
	key, _ := queueKey(keyFunc, deltas[0])
	logger.Info("The event handlers are slow and hold the queue up; hand long work to a workqueue",
		"firstKey", key, "changes", len(deltas), "took", took, "queued", depth)
}
