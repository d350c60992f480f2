package cache

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
)

// bookmarkWatch is the watch that the facade returns to client-go's reflector. It
// carries the versions that the engine reached, as bookmarks, and of those not yet
// read only the latest: no reader needs the others.
type bookmarkWatch struct {
	results chan watch.Event
	cancel  context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	latest tarn.Version
	ended  bool
}

// newBookmarkWatch runs follow in a goroutine that Stop ends and waits for.
func newBookmarkWatch(ctx context.Context, follow func(context.Context, *bookmarkWatch)) *bookmarkWatch {
	f := &bookmarkWatch{results: make(chan watch.Event, 2), done: make(chan struct{})}
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		follow(ctx, f)
	}()
	return f
}

func (f *bookmarkWatch) ResultChan() <-chan watch.Event { return f.results }

// Stop ends the pass and returns when nothing of it runs any more.
func (f *bookmarkWatch) Stop() {
	f.cancel()
	<-f.done
}

// stoppedWatch is the watch of a pass that was stopped before it began.
func stoppedWatch(ctx context.Context) *bookmarkWatch {
	return newBookmarkWatch(ctx, func(_ context.Context, f *bookmarkWatch) { f.end(true) })
}

// offer replaces the version that waits to be read, except that of the end of
// the initial events, on which client-go waits.
func (f *bookmarkWatch) offer(v tarn.Version, initialEnd bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.latest = v
	bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: string(v)}}
	if initialEnd {
		bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	select {
	case waiting := <-f.results:
		if before, ok := waiting.Object.(*metav1.PartialObjectMetadata); ok && before.Annotations != nil {
			bookmark.Annotations = before.Annotations
		}
	default:
	}
	f.results <- watch.Event{Type: watch.Bookmark, Object: bookmark}
}

// end closes the watch. Quietly makes client-go's loop return without an error:
// expiry is the only result of a watch that it treats so. Otherwise the loop opens
// another watch, unless this one was empty.
func (f *bookmarkWatch) end(quietly bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	last := watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: string(f.latest)},
	}}
	if quietly {
		last = watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure,
			Code:   http.StatusGone,
			Reason: metav1.StatusReasonExpired,
		}}
	}
	f.results <- last
	close(f.results)
}
