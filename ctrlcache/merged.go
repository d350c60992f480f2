package ctrlcache

import (
	"errors"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// single is the only informer of a kind, with an eye on who listens.
type single struct {
	toolscache.SharedIndexInformer
	part *scopedInformer
}

func (s single) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandler(handlerFor(h, s.part))
}

func (s single) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handlerFor(h, s.part), resync)
}

func (s single) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandlerWithOptions(handlerFor(h, s.part), o)
}

// mergedInformer is the informers of one kind in several namespaces, as one.
type mergedInformer struct{ parts []*scopedInformer }

var (
	_ toolscache.SharedIndexInformer = single{}
	_ cache.Informer                 = (*mergedInformer)(nil)
)

func (j *mergedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

func (j *mergedInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds the handler to all informers or to none.
func (j *mergedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	h = handlerFor(h, j.parts...)
	r := &mergedRegistration{merged: j}
	for _, p := range j.parts {
		handle, err := p.informer.AddEventHandlerWithOptions(h, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the handler was not added to the informer of %v: %w", p.informerKey, err), j.RemoveEventHandler(r))
		}
		r.handles = append(r.handles, handle)
	}
	return r, nil
}

func (j *mergedInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*mergedRegistration)
	if !ok || r.merged.parts[0] != j.parts[0] {
		return fmt.Errorf("a %T does not belong to this informer of %v", handle, j.parts[0].gvk)
	}
	var failed []error
	for i, h := range r.handles {
		failed = append(failed, j.parts[i].informer.RemoveEventHandler(h))
	}
	return errors.Join(failed...)
}

func (j *mergedInformer) AddIndexers(indexers toolscache.Indexers) error {
	for _, p := range j.parts {
		if err := p.informer.AddIndexers(indexers); err != nil {
			return fmt.Errorf("%v: %w", p.informerKey, err)
		}
	}
	return nil
}

func (j *mergedInformer) HasSynced() bool {
	for _, p := range j.parts {
		if !p.informer.HasSynced() {
			return false
		}
	}
	return true
}

func (j *mergedInformer) HasSyncedChecker() toolscache.DoneChecker {
	checkers := make([]toolscache.DoneChecker, len(j.parts))
	for i, p := range j.parts {
		checkers[i] = p.informer.HasSyncedChecker()
	}
	return &mergedChecker{parts: j.parts, checkers: checkers, done: make(chan struct{})}
}

func (j *mergedInformer) IsStopped() bool {
	for _, p := range j.parts {
		if !p.informer.IsStopped() {
			return false
		}
	}
	return true
}

// mergedRegistration is a handler's registrations with all informers of a mergedInformer,
// in the order of its parts.
type mergedRegistration struct {
	merged  *mergedInformer
	handles []toolscache.ResourceEventHandlerRegistration
}

func (r *mergedRegistration) HasSynced() bool {
	for _, h := range r.handles {
		if !h.HasSynced() {
			return false
		}
	}
	return true
}

func (r *mergedRegistration) HasSyncedChecker() toolscache.DoneChecker {
	checkers := make([]toolscache.DoneChecker, len(r.handles))
	for i, h := range r.handles {
		checkers[i] = h.HasSyncedChecker()
	}
	return &mergedChecker{parts: r.merged.parts, checkers: checkers, done: make(chan struct{})}
}

// mergedChecker is done when all checkers are. A goroutine waits for them only if
// the channel is requested, and only as long as the informers live.
type mergedChecker struct {
	parts    []*scopedInformer
	checkers []toolscache.DoneChecker
	once     sync.Once
	done     chan struct{}
}

func (c *mergedChecker) Name() string {
	return names(c.checkers, toolscache.DoneChecker.Name)
}

func (c *mergedChecker) Done() <-chan struct{} {
	c.once.Do(func() { go c.wait() })
	return c.done
}

func (c *mergedChecker) wait() {
	for i, checker := range c.checkers {
		select {
		case <-checker.Done():
		case <-c.parts[i].life.Done():
			return
		}
	}
	close(c.done)
}
