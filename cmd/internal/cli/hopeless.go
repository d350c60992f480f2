package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// hopeless ends a live view that will never show anything: the engine tries for
// ever, which is right for a program and not for a person who may not list.
type hopeless struct {
	resources int
	giveUp    context.CancelCauseFunc

	mu   sync.Mutex
	seen map[string]error
}

func newHopeless(resources int, giveUp context.CancelCauseFunc) *hopeless {
	return &hopeless{resources: resources, giveUp: giveUp, seen: map[string]error{}}
}

// see receives every failure. When all resources have failed for good before they
// showed anything, it gives up.
func (h *hopeless) see(resource string, synced <-chan struct{}, err error) {
	select {
	case <-synced:
		return
	default:
	}
	if !denied(err) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[resource] = err
	if len(h.seen) < h.resources {
		return
	}
	var all []error
	for _, name := range slices.Sorted(maps.Keys(h.seen)) {
		all = append(all, h.seen[name])
	}
	h.giveUp(errors.Join(all...))
}

// denied says that a server answered, and will give no other answer to the same
// question.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)
}
