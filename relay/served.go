package relay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
)

// served is one resource that the relay serves: from one copy, or from one for each
// namespace of [Options.Namespaces].
//
// Why one copy for each namespace: each has its own watch at the origin, and so its own
// version, gaps and past. Clients of one namespace never ask for another one.
type served struct {
	resource schema.GroupVersionResource
	client   *kube.Client
	// definition is that of a custom resource, else nil.
	definition *definition
	// copies are by namespace, under "" if there is one of all. A custom resource has none
	// while it has no definition, and others when its definition changes.
	copies atomic.Pointer[map[string]*copied]
}

// newServed finds out how a resource is served. The copies of a custom resource begin when
// its definition is known.
func (r *Relay) newServed(client *kube.Client, resource schema.GroupVersionResource) (*served, error) {
	s := &served{resource: resource, client: client}
	s.copies.Store(&map[string]*copied{})
	of, builtin := apiserver.BuiltinResource(resource)
	if builtin {
		return s, r.begin(s, of)
	}
	if resource.Group == "" {
		return nil, fmt.Errorf("relay: %s is neither a built-in resource that this program knows nor a custom one, which have a group", resource)
	}
	var err error
	s.definition, err = r.newDefinition(s)
	return s, err
}

// begin makes the copies of a resource.
func (r *Relay) begin(s *served, of *apiserver.Resource) error {
	namespaces := r.options.Namespaces
	if !of.Namespaced() || len(namespaces) == 0 {
		namespaces = []string{""}
	}
	copies := map[string]*copied{}
	for _, namespace := range namespaces {
		c, err := r.newCopied(s.client, of, s.resource, namespace)
		if err != nil {
			return err
		}
		copies[namespace] = c
	}
	s.copies.Store(&copies)
	return nil
}

// all are the copies, in the order of their namespaces.
func (s *served) all() iter.Seq[*copied] {
	copies := *s.copies.Load()
	return func(yield func(*copied) bool) {
		for _, namespace := range slices.Sorted(maps.Keys(copies)) {
			if !yield(copies[namespace]) {
				return
			}
		}
	}
}

// copyOf returns the copy that has a namespace, nil if there is none. A request across all
// namespaces is refused if only some are copied: a part of the objects would look like all.
func (r *Relay) copyOf(s *served, to apiserver.Target) (*copied, error) {
	copies := *s.copies.Load()
	if c := copies[""]; c != nil {
		return c, nil
	}
	if to.Namespace == "" && len(copies) > 0 {
		return nil, apierrors.NewForbidden(s.resource.GroupResource(), "", fmt.Errorf(
			"this relay has copies of %s only: ask for one of these namespaces, or ask the API server", namespaceList(r.options.Namespaces)))
	}
	return copies[to.Namespace], nil
}

func namespaceList(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("the namespace %q", names[0])
	}
	return fmt.Sprintf("the namespaces %q", names)
}

// run keeps the copies up to date until ctx ends.
func (s *served) run(ctx context.Context) {
	if s.definition != nil {
		s.definition.run(ctx)
		return
	}
	var following sync.WaitGroup
	for c := range s.all() {
		following.Go(func() { c.run(ctx) })
	}
	following.Wait()
}

// fresh says why the copies should not be served; nil if they may be.
func (s *served) fresh(within, upstream time.Duration) error {
	if s.definition != nil {
		if h := s.definition.replica.Health(); !h.Synced {
			return fmt.Errorf("%s: the definition was not read yet (%s)", s.resource.GroupResource(), h)
		}
	}
	var problems []error
	for c := range s.all() {
		problems = append(problems, c.fresh(within, upstream))
	}
	return errors.Join(problems...)
}

// waitSynced waits until the definition, if there is one, and the copies have been read.
func (s *served) waitSynced(ctx context.Context) error {
	if s.definition != nil {
		if err := s.definition.waitSynced(ctx); err != nil {
			return err
		}
	}
	for c := range s.all() {
		if err := c.waitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// everyCopy walks all copies that there are now.
func (r *Relay) everyCopy() iter.Seq[*copied] {
	return func(yield func(*copied) bool) {
		for _, resource := range r.options.Resources {
			for c := range r.served[resource].all() {
				if !yield(c) {
					return
				}
			}
		}
	}
}
