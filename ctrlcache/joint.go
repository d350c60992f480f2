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
	part *part
}

func (s single) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandler(listening(h, s.part))
}

func (s single) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(listening(h, s.part), resync)
}

func (s single) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandlerWithOptions(listening(h, s.part), o)
}

// joint is the informers of one kind in several namespaces, as one.
type joint struct{ parts []*part }

var (
	_ toolscache.SharedIndexInformer = single{}
	_ cache.Informer                 = (*joint)(nil)
)

func (j *joint) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

func (j *joint) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds the handler to all informers or to none.
func (j *joint) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	h = listening(h, j.parts...)
	r := &jointRegistration{joint: j}
	for _, p := range j.parts {
		handle, err := p.informer.AddEventHandlerWithOptions(h, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the handler was not added to the informer of %v: %w", p.place, err), j.RemoveEventHandler(r))
		}
		r.handles = append(r.handles, handle)
	}
	return r, nil
}

func (j *joint) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*jointRegistration)
	if !ok || r.joint.parts[0] != j.parts[0] {
		return fmt.Errorf("a %T does not belong to this informer of %v", handle, j.parts[0].gvk)
	}
	var failed []error
	for i, h := range r.handles {
		failed = append(failed, j.parts[i].informer.RemoveEventHandler(h))
	}
	return errors.Join(failed...)
}

func (j *joint) AddIndexers(indexers toolscache.Indexers) error {
	for _, p := range j.parts {
		if err := p.informer.AddIndexers(indexers); err != nil {
			return fmt.Errorf("%v: %w", p.place, err)
		}
	}
	return nil
}

func (j *joint) HasSynced() bool {
	for _, p := range j.parts {
		if !p.informer.HasSynced() {
			return false
		}
	}
	return true
}

func (j *joint) HasSyncedChecker() toolscache.DoneChecker {
	checkers := make([]toolscache.DoneChecker, len(j.parts))
	for i, p := range j.parts {
		checkers[i] = p.informer.HasSyncedChecker()
	}
	return &jointChecker{parts: j.parts, checkers: checkers, done: make(chan struct{})}
}

func (j *joint) IsStopped() bool {
	for _, p := range j.parts {
		if !p.informer.IsStopped() {
			return false
		}
	}
	return true
}

// jointRegistration is a handler's registrations with all informers of a joint,
// in the order of its parts.
type jointRegistration struct {
	joint   *joint
	handles []toolscache.ResourceEventHandlerRegistration
}

func (r *jointRegistration) HasSynced() bool {
	for _, h := range r.handles {
		if !h.HasSynced() {
			return false
		}
	}
	return true
}

func (r *jointRegistration) HasSyncedChecker() toolscache.DoneChecker {
	checkers := make([]toolscache.DoneChecker, len(r.handles))
	for i, h := range r.handles {
		checkers[i] = h.HasSyncedChecker()
	}
	return &jointChecker{parts: r.joint.parts, checkers: checkers, done: make(chan struct{})}
}

// jointChecker is done when all checkers are. Only who asks for the channel pays
// for somebody to wait, and only as long as the informers live.
type jointChecker struct {
	parts    []*part
	checkers []toolscache.DoneChecker
	once     sync.Once
	done     chan struct{}
}

func (c *jointChecker) Name() string {
	return names(c.checkers, toolscache.DoneChecker.Name)
}

func (c *jointChecker) Done() <-chan struct{} {
	c.once.Do(func() { go c.wait() })
	return c.done
}

func (c *jointChecker) wait() {
	for i, checker := range c.checkers {
		select {
		case <-checker.Done():
		case <-c.parts[i].life.Done():
			return
		}
	}
	close(c.done)
}
