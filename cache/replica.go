package cache

import (
	"errors"
	"fmt"

	"github.com/tarnproject/tarn"
)

// ReplicaOf returns the replica of an informer of this package, and with it what
// client-go's interfaces do not offer: its Health, WaitSynced with a reason,
// WaitFor a version, Changes. The second result is false for an informer that is
// not ours.
//
// It finds the replica through the informer's store, so that it works on informers
// that a factory has wrapped.
func ReplicaOf(informer SharedInformer) (*tarn.Replica[any], bool) {
	if isNil(informer) {
		return nil, false
	}
	own, ok := informer.GetStore().(*indexer)
	if !ok {
		return nil, false
	}
	replica := own.replica.Load()
	return replica, replica != nil
}

// DetectMutations makes an informer of this package watch its objects for changes
// that a program makes to them although they are shared, whatever the environment
// says, and calls onMutation for each, with the field and the difference. Without
// onMutation it prints and panics. It must be called before the informer starts.
//
// Objects are copied and compared every second: it is for tests and debugging, not
// for production.
func DetectMutations(informer SharedInformer, onMutation func(MutationReport)) error {
	if isNil(informer) {
		return errors.New("mutations cannot be detected in a nil informer")
	}
	own, ok := informer.GetStore().(*indexer)
	if !ok || own.informer == nil {
		return fmt.Errorf("mutations cannot be detected in %T: it is not a shared informer of this package", informer)
	}
	s := own.informer
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("informer has already started")
	}
	s.detector = NewMutationDetector(s.description, onMutation)
	return nil
}
