package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// deniedResources ends a live view when the server denies all of its resources. A
// replica retries for ever, which is right for a program, but not for a user who
// has no permission to list.
type deniedResources struct {
	resources int
	giveUp    context.CancelCauseFunc

	mu   sync.Mutex
	errs map[string]error
}

func newDeniedResources(resources int, giveUp context.CancelCauseFunc) *deniedResources {
	return &deniedResources{resources: resources, giveUp: giveUp, errs: map[string]error{}}
}

// add receives every failure. It ends the view if all resources were denied before they
// showed anything.
func (h *deniedResources) add(resource string, synced <-chan struct{}, err error) {
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
	h.errs[resource] = err
	if len(h.errs) < h.resources {
		return
	}
	var all []error
	for _, name := range slices.Sorted(maps.Keys(h.errs)) {
		all = append(all, h.errs[name])
	}
	h.giveUp(errors.Join(all...))
}

// denied reports whether the server answered, and would give the same answer to a retry.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)
}
