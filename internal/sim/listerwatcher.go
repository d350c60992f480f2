package sim

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
)

// listerWatcher is a source as client-go's ListerWatcher, like that of a typed client:
// errors are API errors, lists are typed, watches are channels.
type listerWatcher struct {
	source tarn.Source[*Object]
	// noWatchList makes it refuse initial events, as an old server does.
	noWatchList bool
}

func (l *listerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

func (l *listerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

func (l *listerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	page, err := l.source.List(ctx, tarn.ListQuery{AtLeast: tarn.Version(o.ResourceVersion), Limit: o.Limit, Continue: o.Continue})
	if err != nil {
		return nil, asAPIError(err)
	}
	if len(page.Bad) > 0 {
		return nil, decodingError(page.Bad[0].Err)
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: string(page.Version), Continue: page.Continue}}
	for _, item := range page.Items {
		if item == nil {
			item = &Object{}
		}
		list.Items = append(list.Items, *asConfigMap(item))
	}
	return list, nil
}

func (l *listerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	q := tarn.WatchQuery{From: tarn.Version(o.ResourceVersion), Timeout: time.Duration(*o.TimeoutSeconds) * time.Second}
	q.Initial = o.SendInitialEvents != nil && *o.SendInitialEvents
	if q.Initial && l.noWatchList {
		return nil, asAPIError(tarn.Because(tarn.ReasonNoWatchList, 0, errors.New("no watch list")))
	}
	stream, err := l.source.Watch(ctx, q)
	if err != nil {
		return nil, asAPIError(err)
	}
	return newPump(ctx, stream), nil
}

// asAPIError converts a failure of the source to an API error.
func asAPIError(err error) error {
	after := int(tarn.RetryAfter(err) / time.Second)
	switch tarn.ReasonOf(err) {
	case tarn.ReasonExpired:
		return apierrors.NewResourceExpired(err.Error())
	case tarn.ReasonTooNew:
		e := apierrors.NewTimeoutError(err.Error(), 1)
		e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return e
	case tarn.ReasonRefused:
		return syscall.ECONNREFUSED
	case tarn.ReasonBusy:
		return apierrors.NewTooManyRequests(err.Error(), after)
	case tarn.ReasonInternal:
		return apierrors.NewInternalError(err)
	case tarn.ReasonNoWatchList:
		return apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)
	default:
		return err
	}
}

// pump moves the events of a stream into a channel, as client-go's StreamWatcher
// does.
type pump struct {
	results chan watch.Event
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

func newPump(ctx context.Context, stream tarn.Stream[*Object]) *pump {
	p := &pump{results: make(chan watch.Event)}
	ctx, p.cancel = context.WithCancel(ctx)
	p.done.Go(func() {
		defer close(p.results)
		defer stream.Close()
		p.move(ctx, stream)
	})
	return p
}

func (p *pump) ResultChan() <-chan watch.Event { return p.results }

func (p *pump) Stop() {
	p.cancel()
	p.done.Wait()
}

func (p *pump) move(ctx context.Context, stream tarn.Stream[*Object]) {
	buf := make([]tarn.Event[*Object], 16)
	for {
		n, err := stream.Next(ctx, buf)
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				p.fail(ctx, asAPIError(err))
			}
			return
		}
		for _, e := range buf[:n] {
			if e.Bad.Err != nil {
				// In client-go an event that cannot be decoded ends the stream.
				p.fail(ctx, apierrors.NewInternalError(decodingError(e.Bad.Err)))
				return
			}
			if !p.send(ctx, asWatchEvent(e)) {
				return
			}
		}
	}
}

func (p *pump) fail(ctx context.Context, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	p.send(ctx, watch.Event{Type: watch.Error, Object: &s})
}

func (p *pump) send(ctx context.Context, e watch.Event) bool {
	select {
	case p.results <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

var watchTypes = map[tarn.EventType]watch.EventType{tarn.EventAdded: watch.Added, tarn.EventModified: watch.Modified, tarn.EventDeleted: watch.Deleted}

func asWatchEvent(e tarn.Event[*Object]) watch.Event {
	if e.Type == tarn.EventBookmark {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: string(e.Version)}}
		if e.InitialEnd {
			cm.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		}
		return watch.Event{Type: watch.Bookmark, Object: cm}
	}
	if e.Object == nil {
		return watch.Event{Type: watchTypes[e.Type], Object: (*corev1.ConfigMap)(nil)}
	}
	return watch.Event{Type: watchTypes[e.Type], Object: asConfigMap(e.Object)}
}
