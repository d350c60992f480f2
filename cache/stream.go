package cache

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn"
)

// stream is a watch.Interface as the engine sees it.
type stream struct {
	source *source
	w      watch.Interface
	// decoded says that the watch decodes its objects from bytes for this reader
	// alone. Other watches may give theirs to several readers.
	decoded bool
	// end is why there is nothing more, once that is known.
	end    error
	events int
	closed bool
	done   func(events int)
}

// Next waits for an event and returns it with all others that have arrived.
func (s *stream) Next(ctx context.Context, buf []tarn.Event[any]) (int, error) {
	if s.end != nil {
		return 0, s.end
	}
	s.source.fresh = s.decoded
	n := 0
	events := s.w.ResultChan()
	select {
	case e, ok := <-events:
		n = s.put(buf, n, e, ok)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for s.end == nil && n < len(buf) {
		select {
		case e, ok := <-events:
			n = s.put(buf, n, e, ok)
		default:
			return n, nil
		}
	}
	if n == 0 {
		return 0, s.end
	}
	return n, nil
}

// put adds an event to buf, or records the end.
func (s *stream) put(buf []tarn.Event[any], n int, e watch.Event, ok bool) int {
	switch {
	case !ok:
		s.end = io.EOF
		return n
	case e.Type == watch.Error:
		s.end = classify(s.source.advise("watch", apierrors.FromObject(e.Object)))
		return n
	}
	buf[n] = s.source.event(e)
	s.events++
	return n + 1
}

// Close stops the watch.
func (s *stream) Close() {
	if !s.closed {
		s.closed = true
		s.w.Stop()
		s.done(s.events)
	}
}

var eventTypes = map[watch.EventType]tarn.EventType{
	watch.Added:    tarn.EventAdded,
	watch.Modified: tarn.EventModified,
	watch.Deleted:  tarn.EventDeleted,
	watch.Bookmark: tarn.EventBookmark,
}

// event translates one event; what is wrong with it is recorded in Bad.
func (s *source) event(e watch.Event) tarn.Event[any] {
	out := tarn.Event[any]{Type: eventTypes[e.Type], Object: e.Object}
	err := s.expected.foreign(e.Object)
	if err == nil && out.Type == 0 {
		out.Type = tarn.EventModified
		err = fmt.Errorf("unknown watch event %q", e.Type)
	}
	if err != nil {
		// Whatever is said of what does not belong here is not said of ours.
		if out.Type == tarn.EventDeleted {
			out.Type = tarn.EventModified
		}
		out.Bad = s.bad(e.Object, err)
		return out
	}
	if out.Type == tarn.EventBookmark {
		m, err := meta.Accessor(e.Object)
		if err != nil {
			out.Bad = tarn.BadObject{Err: fmt.Errorf("a bookmark without metadata: %w", err)}
			return out
		}
		out.Version = tarn.Version(m.GetResourceVersion())
		out.InitialEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	return out
}
