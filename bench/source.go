package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A source is a server of pods in this process, for one informer.
//
//   - Its collection is written down nowhere: every request has each pod built
//     anew, as a decoder would, so that the heap holds only what the informer
//     keeps.
//   - Lists honour limit and continue.
//   - Watches honour sendInitialEvents, unless the source is made without
//     streaming; then the informer lists.
//   - Every watch, once past its initial events, is handed to the scenario,
//     which says what happens on it.
type source struct {
	shape     podShape
	pods      int
	streaming bool
	buffer    int
	// touched counts the changes of the first pod, the only one that changes in
	// the source itself.
	touched atomic.Int64

	requested chan struct{}
	watches   chan *stream
}

// newSource makes a source of so many pods. buffer is how many events a watch
// holds before the sender has to wait.
func newSource(shape podShape, pods int, streaming bool, buffer int) *source {
	return &source{
		shape: shape, pods: pods, streaming: streaming, buffer: buffer,
		requested: make(chan struct{}, 1),
		watches:   make(chan *stream, 1),
	}
}

// version is that of the whole collection: its newest pod's.
func (s *source) version() string { return version(s.pods - 1 + int(s.touched.Load())) }

func (s *source) pod(i int) *corev1.Pod {
	pod := newPod(s.shape, i)
	if n := int(s.touched.Load()); i == 0 && n > 0 {
		return updated(pod, s.pods-1+n)
	}
	return pod
}

// touch changes the first pod and returns the event for it. The change stays: a
// list without it would be a source that went back in time.
func (s *source) touch() watch.Event {
	s.touched.Add(1)
	return watch.Event{Type: watch.Modified, Object: s.pod(0)}
}

// IsWatchListSemanticsUnSupported is client-go's query for watch lists.
func (s *source) IsWatchListSemanticsUnSupported() bool { return !s.streaming }

func (s *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

func (s *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// ListWithContext returns one page. The continue token is the index of the
// page's first pod.
func (s *source) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	from, err := 0, error(nil)
	switch {
	case o.Continue != "":
		if from, err = strconv.Atoi(o.Continue); err != nil {
			return nil, fmt.Errorf("the continue token is not one of this source: %w", err)
		}
	case o.Limit != 1: // one item is requested only to learn the version
		s.tellRequested()
	}
	to := s.pods
	if o.Limit > 0 {
		to = min(s.pods, from+int(o.Limit))
	}
	page := &corev1.PodList{Items: make([]corev1.Pod, 0, to-from)}
	page.ResourceVersion = s.version()
	if to < s.pods {
		page.Continue = strconv.Itoa(to)
		page.RemainingItemCount = new(int64(s.pods - to))
	}
	for i := from; i < to; i++ {
		page.Items = append(page.Items, *s.pod(i))
	}
	return page, nil
}

func (s *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	st := &stream{events: make(chan watch.Event, s.buffer), stopped: make(chan struct{})}
	go func() {
		if o.SendInitialEvents != nil && *o.SendInitialEvents {
			s.tellRequested()
			if st.sendAll(s.pods+1, s.initial) != nil {
				return
			}
		}
		select {
		case s.watches <- st:
		case <-st.stopped:
		case <-ctx.Done():
		}
	}()
	return st, nil
}

// initial is the i-th event of a stream that begins with the whole collection.
func (s *source) initial(i int) watch.Event {
	if i < s.pods {
		return watch.Event{Type: watch.Added, Object: s.pod(i)}
	}
	end := &corev1.Pod{}
	end.ResourceVersion = s.version()
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return watch.Event{Type: watch.Bookmark, Object: end}
}

// tellRequested records a request for the whole collection. Only one record is
// kept.
func (s *source) tellRequested() {
	select {
	case s.requested <- struct{}{}:
	default:
	}
}

// nextWatch waits for a watch that the informer follows, past its initial
// events.
func (s *source) nextWatch(ctx context.Context) (*stream, error) {
	return receive(ctx, s.watches, "a watch")
}

// nextRequest waits until the informer requests the whole collection.
func (s *source) nextRequest(ctx context.Context) error {
	_, err := receive(ctx, s.requested, "a request for the whole collection")
	return err
}

// A stream is a watch whose events one sender gives it.
type stream struct {
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

var errStopped = errors.New("the informer has stopped the watch")

func (s *stream) ResultChan() <-chan watch.Event { return s.events }

// Stop leaves the channel open: closing it is the sender's right.
func (s *stream) Stop() { s.once.Do(func() { close(s.stopped) }) }

func (s *stream) send(e watch.Event) error {
	select {
	case s.events <- e:
		return nil
	case <-s.stopped:
		return errStopped
	}
}

// sendAll sends the events 0 to n-1, each made just before it is sent.
func (s *stream) sendAll(n int, event func(int) watch.Event) error {
	for i := range n {
		if err := s.send(event(i)); err != nil {
			return err
		}
	}
	return nil
}

// expire ends the watch as a server does that has compacted its history.
func (s *stream) expire() error {
	defer close(s.events)
	return s.send(watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: "too old resource version",
	}})
}
