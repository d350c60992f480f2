package cache

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
)

// feed is the watch that the shell gives to client-go's reflector. It carries the
// versions that the engine reached, as bookmarks, and only the latest of those
// not yet read: nobody wants to know the others.
type feed struct {
	results chan watch.Event
	cancel  context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	latest tarn.Version
	ended  bool
}

// newFeed runs follow in a goroutine that Stop ends and waits for.
func newFeed(ctx context.Context, follow func(context.Context, *feed)) *feed {
	f := &feed{results: make(chan watch.Event, 2), done: make(chan struct{})}
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		follow(ctx, f)
	}()
	return f
}

func (f *feed) ResultChan() <-chan watch.Event { return f.results }

// Stop ends the pass and returns when nothing of it runs any more.
func (f *feed) Stop() {
	f.cancel()
	<-f.done
}

// stoppedFeed is the watch of a pass that was stopped before it began.
func stoppedFeed(ctx context.Context) *feed {
	return newFeed(ctx, func(_ context.Context, f *feed) { f.end(true) })
}

// offer replaces the version that waits to be read, except that of the end of
// the initial events, on which client-go waits.
func (f *feed) offer(v tarn.Version, initialEnd bool) {
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

// end closes the feed. Quietly makes client-go's loop return without an error:
// of all that a watch can say, expiry is what it takes so. Otherwise the loop
// asks for another watch, provided that this one was not empty.
func (f *feed) end(quietly bool) {
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
