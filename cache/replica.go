package cache

import "github.com/tarnproject/tarn"

// ReplicaOf returns the replica behind an informer of this package, and with it
// what client-go's interfaces have no word for: its Health, WaitSynced that tells
// why, WaitFor a version, Changes. The second result is false for an informer
// that is not ours.
//
// It finds the replica through the informer's store, so that it works on
// informers that a factory has wrapped.
func ReplicaOf(informer SharedInformer) (*tarn.Replica[any], bool) {
	if isNil(informer) {
		return nil, false
	}
	own, ok := informer.GetStore().(*indexer)
	if !ok || own.replica == nil {
		return nil, false
	}
	return own.replica, true
}
