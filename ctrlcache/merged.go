package ctrlcache

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// single is the only informer of a kind. It sees every handler that is added.
type single struct {
	toolscache.SharedIndexInformer
	scope *scopedInformer
}

func (s single) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandler(handlerFor(h, s.scope))
}

func (s single) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handlerFor(h, s.scope), resync)
}

func (s single) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandlerWithOptions(handlerFor(h, s.scope), o)
}

// mergedInformer is the informers of one kind in several namespaces, as one.
type mergedInformer struct {
	informers []*scopedInformer
	checker   func() *mergedChecker
}

func newMergedInformer(informers []*scopedInformer) *mergedInformer {
	return &mergedInformer{informers, sync.OnceValue(func() *mergedChecker {
		c := newMergedChecker(informers)
		for _, p := range informers {
			c.checkers = append(c.checkers, p.informer.HasSyncedChecker())
		}
		return c
	})}
}

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
	h = handlerFor(h, j.informers...)
	r := &mergedRegistration{merged: j}
	for _, p := range j.informers {
		handle, err := p.informer.AddEventHandlerWithOptions(h, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w; it is that of %v", err, p.informerKey), j.RemoveEventHandler(r))
		}
		r.handles = append(r.handles, handle)
	}
	r.checker = sync.OnceValue(func() *mergedChecker {
		c := newMergedChecker(j.informers)
		for _, handle := range r.handles {
			c.checkers = append(c.checkers, handle.HasSyncedChecker())
		}
		return c
	})
	return r, nil
}

// RemoveEventHandler does nothing, as client-go's informer, if the handler is that of
// another informer: one of the same kind, for example, that was removed.
func (j *mergedInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*mergedRegistration)
	if !ok {
		return fmt.Errorf("a %T is not what AddEventHandler of an informer of %v returned", handle, j.informers[0].gvk)
	}
	if r.merged.informers[0] != j.informers[0] {
		return nil
	}
	var failed []error
	for i, h := range r.handles {
		failed = append(failed, j.informers[i].informer.RemoveEventHandler(h))
	}
	return errors.Join(failed...)
}

func (j *mergedInformer) AddIndexers(indexers toolscache.Indexers) error {
	for _, p := range j.informers {
		if err := p.informer.AddIndexers(indexers); err != nil {
			return fmt.Errorf("%w; in the informer of %v", err, p.informerKey)
		}
	}
	return nil
}

func (j *mergedInformer) HasSynced() bool {
	for _, p := range j.informers {
		if !p.informer.HasSynced() {
			return false
		}
	}
	return true
}

func (j *mergedInformer) HasSyncedChecker() toolscache.DoneChecker { return j.checker() }

func (j *mergedInformer) IsStopped() bool {
	for _, p := range j.informers {
		if !p.informer.IsStopped() {
			return false
		}
	}
	return true
}

// mergedRegistration is a handler's registrations with all informers of a mergedInformer,
// in the order of its informers.
type mergedRegistration struct {
	merged  *mergedInformer
	handles []toolscache.ResourceEventHandlerRegistration
	checker func() *mergedChecker
}

func (r *mergedRegistration) HasSynced() bool {
	for _, h := range r.handles {
		if !h.HasSynced() {
			return false
		}
	}
	return true
}

func (r *mergedRegistration) HasSyncedChecker() toolscache.DoneChecker { return r.checker() }

// mergedChecker is done when all checkers are.
//
// Its channel is closed by the first that notices: a goroutine that begins when the
// channel is first requested and ends with the informers, or a later request. So the
// channel that Done returns is closed already if all checkers are done; code that looks
// at it without waiting, as client-go's IsDone does, would otherwise depend on whether
// that goroutine has run.
type mergedChecker struct {
	informers []*scopedInformer
	checkers  []toolscache.DoneChecker
	wait      sync.Once
	close     sync.Once
	done      chan struct{}
}

func newMergedChecker(informers []*scopedInformer) *mergedChecker {
	return &mergedChecker{informers: informers, done: make(chan struct{})}
}

// Name has the namespace before the name of each checker, which are the same otherwise: a
// log says with it what has not synced.
func (c *mergedChecker) Name() string {
	named := make([]string, len(c.checkers))
	for i, checker := range c.checkers {
		named[i] = c.informers[i].namespace + ": " + checker.Name()
	}
	return strings.Join(named, ", ")
}

func (c *mergedChecker) Done() <-chan struct{} {
	if c.allDone() {
		c.finish()
	} else {
		c.wait.Do(func() { c.informers[0].report(c.waitForAll) })
	}
	return c.done
}

func (c *mergedChecker) allDone() bool {
	for _, checker := range c.checkers {
		if !toolscache.IsDone(checker) {
			return false
		}
	}
	return true
}

func (c *mergedChecker) waitForAll() {
	for _, checker := range c.checkers {
		select {
		case <-checker.Done():
		case <-c.informers[0].life.Done(): // all of them are removed, or stopped, together
			return
		}
	}
	c.finish()
}

func (c *mergedChecker) finish() {
	c.close.Do(func() { close(c.done) })
}
