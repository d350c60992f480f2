package cache

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
)

// registration is one handler of an informer: a subscription of its replica.
type registration struct {
	informer *informer
	handler  ResourceEventHandler
	name     string
	logger   klog.Logger
	// subscription is set before the handle is given out, but perhaps after the
	// first delivery.
	subscription atomic.Pointer[tarn.Subscription[any]]
	// resyncing says whether the handler is offered objects again that have not
	// changed. It begins as true, and each resync decides again.
	resyncing atomic.Bool
	resync    resyncSchedule
	guard     crashGuard
}

var _ ResourceEventHandlerRegistration = (*registration)(nil)

func (s *informer) AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

func (s *informer) AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{ResyncPeriod: &resyncPeriod})
}

func (s *informer) AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	if isNil(handler) {
		return nil, errors.New("a nil handler was not added to the shared informer")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IsStopped() {
		return nil, stoppedError(handler)
	}
	r := &registration{
		informer: s,
		handler:  handler,
		name:     handlerName(handler),
		logger:   ptr.Deref(options.Logger, klog.Background()),
	}
	r.resyncing.Store(true)
	r.resync = s.plan(r.logger, ptr.Deref(options.ResyncPeriod, s.resyncs.standard))
	subscription, err := s.replica.Subscribe(r.deliver, tarn.SubscribeOptions{Name: r.name, Syncs: r.resyncing.Load, Moved: wantsMoved(handler)})
	if err != nil {
		return nil, stoppedError(handler)
	}
	r.subscription.Store(subscription)
	s.handlers = append(s.handlers, r)
	return r, nil
}

func stoppedError(handler ResourceEventHandler) error {
	return fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
}

// RemoveEventHandler ends a registration of this informer. A registration that it
// does not have is no error; any other value is.
func (s *informer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("invalid key type %T: only what AddEventHandler returned can be removed", handle)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.handlers, r); i >= 0 {
		s.handlers = slices.Delete(s.handlers, i, i+1)
		r.subscription.Load().Close()
	}
	return nil
}

// HasSynced says whether the handler has received the first state.
func (r *registration) HasSynced() bool { return hasSynced(r.subscription.Load().Synced()) }

func (r *registration) HasSyncedChecker() DoneChecker {
	return namedDone{fmt.Sprintf("%s + event handler %s", r.informer.HasSyncedChecker().Name(), r.name), r.subscription.Load().Synced()}
}

// ShutdownChan is closed when the handler has been removed and none of its code
// runs any more.
func (r *registration) ShutdownChan() <-chan struct{} { return r.subscription.Load().Done() }

// deliver calls the handler. A panic is reported with the handler's name.
func (r *registration) deliver(c tarn.Change[any]) {
	r.guard.call(r.logger, func() {
		returned := false
		defer func() {
			if !returned {
				r.logger.Error(nil, "An event handler panicked", "handler", r.name, "key", c.Key)
			}
		}()
		r.measure()
		if c.Type != tarn.Update || c.Rewound || !sameVersion(c) || r.resyncing.Load() {
			handle(r.handler, c)
		}
		returned = true
	})
}

// measure reports how much waits for the handler.
func (r *registration) measure() {
	if r.informer.metrics == nil {
		return
	}
	if s := r.subscription.Load(); s != nil {
		r.informer.metrics.queued(s.Lag().Pending)
	}
}

// handle puts a change in the words of a handler.
func handle(h ResourceEventHandler, c tarn.Change[any]) {
	switch {
	case c.Moved:
		handleMoved(h, c)
	case c.Type == tarn.Add:
		h.OnAdd(c.Object, c.Initial)
	case c.Type == tarn.Update, c.Type == tarn.Sync:
		h.OnUpdate(c.Old, c.Object)
	case c.Missed:
		h.OnDelete(DeletedFinalStateUnknown{Key: string(c.Key), Obj: c.Object})
	default:
		h.OnDelete(c.Object)
	}
}

// sameVersion reports whether an update has the version of the state before. Only
// handlers that resync get such an update. Without versions, as in objects of fake
// clientsets, every update counts.
func sameVersion(c tarn.Change[any]) bool {
	old, err := meta.Accessor(c.Old)
	if err != nil {
		return false
	}
	now, err := meta.Accessor(c.Object)
	return err == nil && now.GetResourceVersion() != "" && now.GetResourceVersion() == old.GetResourceVersion()
}
