package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/internal/testsize"
)

// collect reads a stream to its end.
func collect[T any](t testing.TB, stream tarn.Stream[T], buf int) ([]tarn.Event[T], error) {
	t.Helper()
	var all []tarn.Event[T]
	b := make([]tarn.Event[T], buf)
	for {
		n, err := stream.Next(t.Context(), b)
		if err != nil {
			return all, err
		}
		if n == 0 {
			t.Fatal("Next returned nothing at all")
		}
		all = append(all, b[:n]...)
		clear(b)
	}
}

func watchPods(t testing.TB, s *server, opts SourceOptions) tarn.Stream[*corev1.Pod] {
	t.Helper()
	stream, err := newSource[*corev1.Pod](t, s, pods, opts).Watch(t.Context(), tarn.WatchQuery{From: "5", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
	return stream
}

func TestWatchFormats(t *testing.T) {
	all := newPods(testsize.Of(400, 150))
	for _, contentType := range []string{jsonType, protobufType} {
		var body []byte
		for i, p := range all {
			body = append(body, event(t, contentType, []string{"ADDED", "MODIFIED", "DELETED"}[i%3], p)...)
		}
		body = append(body, bookmark(t, contentType, "900", false)...)
		body = append(body, bookmark(t, contentType, "901", true)...)
		for _, piece := range []int{len(body), 5000, 333} {
			for _, http2 := range []bool{false, true} {
				for _, buf := range []int{1, 128} {
					t.Run(fmt.Sprintf("%s/in %d/http2=%v/buf=%d", contentType, piece, http2, buf), func(t *testing.T) {
						s := serve(t, http2, func(w http.ResponseWriter, r *http.Request) {
							w.Header().Set("Content-Type", contentType)
							for p := range slices.Chunk(body, piece) {
								_, _ = w.Write(p)
								w.(http.Flusher).Flush()
							}
						})
						events, err := collect(t, watchPods(t, s, SourceOptions{}), buf)
						if err != io.EOF {
							t.Fatal(err)
						}
						if len(events) != len(all)+2 {
							t.Fatalf("%d events", len(events))
						}
						for i, p := range all {
							if want := []tarn.EventType{tarn.EventAdded, tarn.EventModified, tarn.EventDeleted}[i%3]; events[i].Type != want || events[i].Bad.Err != nil {
								t.Fatalf("event %d: %v", i, events[i])
							}
							if diff := difference(p, events[i].Object); diff != "" {
								t.Fatalf("event %d: %s", i, diff)
							}
						}
						want := []tarn.Event[*corev1.Pod]{{Type: tarn.EventBookmark, Version: "900"}, {Type: tarn.EventBookmark, Version: "901", InitialEnd: true}}
						if diff := cmp.Diff(want, events[len(all):]); diff != "" {
							t.Error(diff)
						}
					})
				}
			}
		}
	}
}

func TestWatchQuery(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, jsonType, nil) })
	source := newSource[*corev1.Pod](t, s, pods, SourceOptions{})
	for _, q := range []tarn.WatchQuery{{From: "5", Timeout: 90 * time.Second}, {From: "", Initial: true, Timeout: time.Minute}} {
		stream, err := source.Watch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := collect(t, stream, 1); err != io.EOF {
			t.Error(err)
		}
		stream.Close()
		stream.Close()
	}
	want := []string{
		"/api/v1/pods?allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=90&watch=true",
		"/api/v1/pods?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=60&watch=true",
	}
	if diff := cmp.Diff(want, s.seen(func(r *http.Request) string { return r.URL.String() })); diff != "" {
		t.Error(diff)
	}
}

// A bad event is reported by itself; the others arrive.
func TestWatchBadEvents(t *testing.T) {
	good, later := newPod(1), newPod(2)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", ResourceVersion: "8"}}
	brokenJSON := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"ns","resourceVersion":"8"},"spec":{"containers":5}}`)
	brokenProto := func() []byte {
		raw := encode(t, protobufType, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns", ResourceVersion: "8"}, Status: corev1.PodStatus{Phase: "x"}})
		i := strings.LastIndex(string(raw), "\x0a\x01x") // the phase
		raw[i] = 0x08                                    // says that it is a number
		raw[i+1] = 0xff
		return raw
	}()
	big := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: "ns", ResourceVersion: "8"}, Status: corev1.PodStatus{Message: strings.Repeat("m", 100_000)}}
	status := &metav1.Status{Status: metav1.StatusFailure, Message: "no"}
	for _, test := range []struct {
		name     string
		json     []byte
		protobuf []byte
		want     tarn.Event[*corev1.Pod]
		err      string
	}{
		{"foreign", event(t, jsonType, "ADDED", service), event(t, protobufType, "ADDED", service),
			tarn.Event[*corev1.Pod]{Type: tarn.EventAdded, Bad: tarn.BadObject{Key: "ns/s", Version: "8"}}, "of kind /v1, Kind=Service, expected /v1, Kind=Pod"},
		{"foreign deleted", event(t, jsonType, "DELETED", service), event(t, protobufType, "DELETED", service),
			tarn.Event[*corev1.Pod]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: "ns/s", Version: "8"}}, "Kind=Service"},
		{"broken", rawEvent(t, jsonType, "MODIFIED", brokenJSON), rawEvent(t, protobufType, "MODIFIED", brokenProto),
			tarn.Event[*corev1.Pod]{Type: tarn.EventModified, Bad: tarn.BadObject{Key: "ns/b", Version: "8"}}, "cannot be decoded"},
		{"broken deleted", rawEvent(t, jsonType, "DELETED", brokenJSON), rawEvent(t, protobufType, "DELETED", brokenProto),
			tarn.Event[*corev1.Pod]{Type: tarn.EventDeleted, Bad: tarn.BadObject{Key: "ns/b", Version: "8"}}, "cannot be decoded"},
		{"unknown type", event(t, jsonType, "FOO", service), event(t, protobufType, "FOO", newPod(3)),
			tarn.Event[*corev1.Pod]{Type: tarn.EventModified}, ""},
		{"too long", event(t, jsonType, "ADDED", big), event(t, protobufType, "ADDED", big),
			tarn.Event[*corev1.Pod]{Type: tarn.EventAdded, Bad: tarn.BadObject{Key: "ns/big", Version: "8"}}, "the limit is 20000"},
		{"status as object", event(t, jsonType, "ADDED", status), event(t, protobufType, "ADDED", status),
			tarn.Event[*corev1.Pod]{Type: tarn.EventAdded}, "the object is a Status"},
		{"no event", []byte(`{"a":1}`), framed([]byte("garbage")),
			tarn.Event[*corev1.Pod]{Type: tarn.EventUndecodable}, "it is not a watch event"},
		{"empty", []byte(`{}`), framed(nil),
			tarn.Event[*corev1.Pod]{Type: tarn.EventUndecodable}, "it is not a watch event"},
		{"null object", []byte(`{"type":"ADDED","object":null}`), framed([]byte("\x0a\x05ADDED")),
			tarn.Event[*corev1.Pod]{Type: tarn.EventUndecodable}, "it is not a watch event"},
		{"foreign bookmark", event(t, jsonType, "BOOKMARK", service), event(t, protobufType, "BOOKMARK", service),
			tarn.Event[*corev1.Pod]{Type: tarn.EventBookmark}, "bookmark cannot be used"},
	} {
		for contentType, frame := range map[string][]byte{jsonType: test.json, protobufType: test.protobuf} {
			t.Run(test.name+"/"+contentType, func(t *testing.T) {
				s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
					answer(w, contentType, slices.Concat(event(t, contentType, "ADDED", good), frame, event(t, contentType, "MODIFIED", later)))
				})
				events, err := collect(t, watchPods(t, s, SourceOptions{MaxItem: 20000}), 128)
				if err != io.EOF || len(events) != 3 {
					t.Fatalf("%d events, %v", len(events), err)
				}
				if diff := cmp.Diff([]*corev1.Pod{good, later}, []*corev1.Pod{events[0].Object, events[2].Object}); diff != "" {
					t.Error(diff)
				}
				got := events[1]
				if got.Bad.Err == nil || !strings.Contains(got.Bad.Err.Error(), test.err) || !strings.Contains(got.Bad.Err.Error(), "of the watch of pods: ") {
					t.Errorf("error %v", got.Bad.Err)
				}
				if test.want.Bad.Key == "" {
					got.Bad.Key, got.Bad.Version = "", ""
				}
				got.Bad.Err = nil
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// The end of a stream decides what the engine does next.
func TestWatchEnds(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old").Status()
	tooNew := apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1).Status()
	internal := apierrors.NewInternalError(errors.New("etcd")).Status()
	busy := apierrors.NewTooManyRequests("slow down", 7).Status()
	for _, test := range []struct {
		name   string
		body   func(contentType string) []byte
		reason tarn.Reason
		words  string
	}{
		{"expired", func(c string) []byte { return event(t, c, "ERROR", &gone) }, tarn.ReasonExpired, "cannot watch pods: too old"},
		{"too new", func(c string) []byte { return event(t, c, "ERROR", &tooNew) }, tarn.ReasonTooNew, "Too large"},
		{"internal", func(c string) []byte { return event(t, c, "ERROR", &internal) }, tarn.ReasonInternal, "etcd"},
		{"busy", func(c string) []byte { return event(t, c, "ERROR", &busy) }, tarn.ReasonBusy, "slow down"},
		{"error without status", func(c string) []byte { return event(t, c, "ERROR", newPod(3)) }, tarn.ReasonUnknown, "that is not a Status"},
		{"cut off", func(c string) []byte { return event(t, c, "ADDED", newPod(3))[:100] }, tarn.ReasonLost, "the watch of pods was cut off at byte"},
		{"html", func(c string) []byte { return []byte("<html>Bad Gateway") }, tarn.ReasonUnknown, "is malformed at byte"},
	} {
		for _, contentType := range []string{jsonType, protobufType} {
			t.Run(test.name+"/"+contentType, func(t *testing.T) {
				s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
					answer(w, contentType, slices.Concat(event(t, contentType, "ADDED", newPod(1)), test.body(contentType)))
				})
				stream := watchPods(t, s, SourceOptions{})
				events, err := collect(t, stream, 128)
				if len(events) != 1 || events[0].Object.Name != "pod-1" {
					t.Errorf("events %v", events)
				}
				if tarn.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.words) {
					t.Errorf("%v: %v", tarn.ReasonOf(err), err)
				}
				if test.reason == tarn.ReasonBusy && tarn.RetryAfter(err) != 7*time.Second {
					t.Errorf("retry after %v", tarn.RetryAfter(err))
				}
				if _, again := stream.Next(t.Context(), make([]tarn.Event[*corev1.Pod], 1)); again != err {
					t.Errorf("then %v", again)
				}
			})
		}
	}
}

// A context that ends a wait loses no event.
func TestWatchContext(t *testing.T) {
	more := make(chan struct{})
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobufType)
		w.(http.Flusher).Flush()
		for i := range 3 {
			<-more
			_, _ = w.Write(event(t, protobufType, "ADDED", newPod(i)))
			w.(http.Flusher).Flush()
		}
	})
	stream := watchPods(t, s, SourceOptions{})
	buf := make([]tarn.Event[*corev1.Pod], 8)
	for i := range 3 {
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if n, err := stream.Next(ctx, buf); n != 0 || err != context.Canceled {
				t.Fatalf("%d, %v", n, err)
			}
		}
		more <- struct{}{}
		if n, err := stream.Next(t.Context(), buf); n != 1 || err != nil || buf[0].Object.Name != fmt.Sprintf("pod-%d", i) {
			t.Fatalf("%d, %v", n, err)
		}
	}
}

// A reader that does not read costs bounded memory, and Close does not wait for it.
func TestWatchSlowReader(t *testing.T) {
	pod := newPod(1)
	pod.Status.Message = strings.Repeat("x", 10_000)
	frame := event(t, protobufType, "ADDED", pod)
	written := make(chan int, 1)
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobufType)
		n := 0
		for r.Context().Err() == nil {
			if _, err := w.Write(frame); err != nil {
				break
			}
			n++
		}
		written <- n
	})
	st := watchPods(t, s, SourceOptions{}).(*stream[*corev1.Pod])
	for {
		st.inbox.mu.Lock()
		bytes := st.inbox.bytes
		st.inbox.mu.Unlock()
		if bytes > maxQueuedBytes+2*blockSize {
			t.Fatalf("%d bytes are queued", bytes)
		}
		if bytes >= maxQueuedBytes {
			break
		}
	}
	st.Close()
	<-written
	if got := st.inbox.bytes; got > maxQueuedBytes+2*blockSize {
		t.Errorf("%d bytes are queued", got)
	}
}

// An unstructured object without a kind gets the collection's.
func TestWatchUnstructured(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		answer(w, jsonType, []byte(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"b"}}}`))
	})
	stream, err := newSource[any](t, s, anyPods, SourceOptions{}).Watch(t.Context(), tarn.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	events, _ := collect(t, stream, 8)
	if len(events) != 2 || typeOf(events[0].Object).Kind != "Pod" || events[1].Bad.Key != "b" {
		t.Errorf("%v", events)
	}
}

// A connection that breaks under a stream is reported as lost; a stream that its
// owner ends reports the context.
func TestWatchBreaks(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		s := serve(t, http2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", protobufType)
			_, _ = w.Write(event(t, protobufType, "ADDED", newPod(1)))
			w.(http.Flusher).Flush()
			if r.URL.Query().Get("resourceVersion") == "5" {
				panic(http.ErrAbortHandler)
			}
			<-r.Context().Done()
		})
		if _, err := collect(t, watchPods(t, s, SourceOptions{}), 1); tarn.ReasonOf(err) != tarn.ReasonLost || !strings.Contains(err.Error(), "the watch of pods was cut off at byte") {
			t.Errorf("http2=%v: %v", http2, err)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		stream, err := newSource[*corev1.Pod](t, s, pods, SourceOptions{}).Watch(ctx, tarn.WatchQuery{From: "6"})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]tarn.Event[*corev1.Pod], 4)
		if n, err := stream.Next(t.Context(), buf); n != 1 || err != nil {
			t.Errorf("http2=%v: %d, %v", http2, n, err)
		}
		cancel(why)
		if _, err := stream.Next(t.Context(), buf); err != why {
			t.Errorf("http2=%v: %v", http2, err)
		}
		stream.Close()
	}
}
