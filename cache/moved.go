package cache

import "github.com/tarnproject/tarn"

// A MovedHandler is a handler that is notified when the shard of an informer changes:
// which objects came into its store, and which left it for another process. These objects
// are neither new nor deleted, so other handlers are not notified, and OnAdd and OnDelete
// are not called for them. See package kube for shards.
type MovedHandler interface {
	ResourceEventHandler
	OnMovedIn(obj any)
	OnMovedOut(obj any)
}

func wantsMoved(h ResourceEventHandler) bool {
	_, ok := h.(MovedHandler)
	return ok
}

func handleMoved(h ResourceEventHandler, c tarn.Change[any]) {
	moved, ok := h.(MovedHandler)
	switch {
	case !ok:
	case c.Type == tarn.Add:
		moved.OnMovedIn(c.Object)
	default:
		moved.OnMovedOut(c.Object)
	}
}
