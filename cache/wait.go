package cache

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// syncPoll is how often WaitForCacheSync asks; the period is client-go's.
const syncPoll = 100 * time.Millisecond

// WaitForCacheSync waits until every function answers true. It returns false if
// stopCh is closed before; if it is closed already, each function is asked only once.
//
// It asks every 100 ms, as client-go does. Why not return at the moment of the sync:
// programs start their workers next, and rely on the events of several informers having
// met in their queue by then. Code that wants to know the moment uses [WaitFor].
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	ticker := time.NewTicker(syncPoll)
	defer ticker.Stop()
	for !allSynced(cacheSyncs) {
		select {
		case <-stopCh: // whatever syncs from now on
			return false
		default:
		}
		select {
		case <-ticker.C:
		case <-stopCh:
			return false
		}
	}
	return true
}

func allSynced(cacheSyncs []InformerSynced) bool {
	for _, synced := range cacheSyncs {
		if !synced() {
			return false
		}
	}
	return true
}

// WaitForNamedCacheSync is [WaitForCacheSync] with a log line before and after
// that names the controller that waits.
func WaitForNamedCacheSync(controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	ctx := klog.NewContext(context.Background(), klog.Background().WithValues("controller", controllerName))
	return waitAndLog(ctx, stopCh, cacheSyncs)
}

// WaitForNamedCacheSyncWithContext is [WaitForNamedCacheSync] where the context's
// logger names the controller, and the end of the context ends the wait.
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	return waitAndLog(ctx, ctx.Done(), cacheSyncs)
}

func waitAndLog(ctx context.Context, stopCh <-chan struct{}, cacheSyncs []InformerSynced) bool {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for caches to sync")
	if !WaitForCacheSync(stopCh, cacheSyncs...) {
		utilruntime.HandleErrorWithContext(ctx, nil, "Unable to sync caches: stopped before they had")
		return false
	}
	logger.Info("Caches are synced")
	return true
}

// WaitFor waits until every checker is done and then returns true, or until ctx
// ends and then returns whether all are done nevertheless.
//
// With a non-empty what it logs the beginning, each checker that is done, and at
// the end those that are not.
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	logs := what != ""
	helper, logger := klog.FromContext(ctx).WithCallStackHelper()
	helper()
	if logs {
		logger.Info("Waiting", "for", what)
	}
	pending := slices.Clone(checkers)
	for len(pending) > 0 {
		i := nextDone(ctx, pending)
		if i < 0 {
			break
		}
		if logs {
			logger.Info("Done waiting", "for", what, "instance", pending[i].Name())
		}
		pending = slices.Delete(pending, i, i+1)
	}
	if logs && len(pending) > 0 {
		logger.Info("Timed out waiting", "for", what, "cause", context.Cause(ctx), "instances", checkerNames(pending))
	}
	return len(pending) == 0
}

// nextDone gives the index of a checker that is done, -1 if the context has ended
// and none is.
func nextDone(ctx context.Context, checkers []DoneChecker) int {
	channels := make([]<-chan struct{}, len(checkers)+1)
	for i, checker := range checkers {
		channels[i] = checker.Done()
	}
	channels[len(checkers)] = ctx.Done()
	if i := waitForAny(channels...); i < len(checkers) {
		return i
	}
	return slices.IndexFunc(checkers, IsDone)
}

func checkerNames(checkers []DoneChecker) []string {
	names := make([]string, len(checkers))
	for i, checker := range checkers {
		names[i] = checker.Name()
	}
	slices.Sort(names)
	return names
}

// IsDone says whether the checker is done, without waiting.
func IsDone(checker DoneChecker) bool {
	select {
	case <-checker.Done():
		return true
	default:
		return false
	}
}

// waitForAny returns the index of a channel that is closed. Nil channels never are.
//
// One goroutine and one select of any width, instead of a goroutine for each
// channel: nothing has to be cleaned up, and an event is seen in the order in
// which it happened.
func waitForAny(channels ...<-chan struct{}) int {
	cases := make([]reflect.SelectCase, len(channels))
	for i, channel := range channels {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(channel)}
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen
}

// ShutDownEventHandler removes the handler and waits until it has seen its last
// event and none of its code runs any more. Never call it from the handler: it
// would wait for itself.
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	if err := informer.RemoveEventHandler(handle); err != nil {
		return err
	}
	stopping, ok := handle.(interface{ ShutdownChan() <-chan struct{} })
	if !ok {
		return fmt.Errorf("the handler is removed, but %T has no ShutdownChan to tell when it is done: handle does not support ShutdownChan()", handle)
	}
	<-stopping.ShutdownChan()
	return nil
}
