package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// An event that lost a bracket ends the stream when the next one comes, instead of
// swallowing it and all that follow for as long as the stream is open.
func TestWatchEventWithoutEnd(t *testing.T) {
	const head = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}`
	for _, broken := range []string{
		head + "}\n",
		head + "  \r\n",
		head + `,"status":{"message":"` + strings.Repeat("m", 3*firstBlock) + "\"}}\n",
	} {
		open := make(chan struct{})
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
			answer(w, jsonType, event(t, jsonType, "ADDED", newPod(1)))
			_, _ = io.WriteString(w, broken)
			w.(http.Flusher).Flush()
			_, _ = w.Write(event(t, jsonType, "ADDED", newPod(2)))
			w.(http.Flusher).Flush()
			<-open
		})
		events, err := collect(t, watchPods(t, s, SourceOptions{}), 8)
		close(open)
		if len(events) != 1 || err == nil || !strings.Contains(err.Error(), "the watch of pods is malformed at byte") || !strings.Contains(err.Error(), "before another begins") {
			t.Errorf("%.100q: %d events, %v", broken, len(events), err)
		}
	}
}

// Events may still be written over several lines.
func TestWatchEventOfManyLines(t *testing.T) {
	const pod = "{\"type\":\"ADDED\",\n\"object\":\n{\"metadata\":\n{\"name\":\"a\"},\"spec\":{\"containers\":[\n{\"name\":\"c\"},\n\n{\"name\":\"d\"}\n]\n}}\n}\n"
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		for _, c := range []byte(pod + pod) {
			_, _ = w.Write([]byte{c})
			w.(http.Flusher).Flush()
		}
	})
	events, err := collect(t, watchPods(t, s, SourceOptions{}), 8)
	if err != io.EOF || len(events) != 2 || events[1].Bad.Err != nil || len(events[1].Object.Spec.Containers) != 2 {
		t.Errorf("%v, %v", events, err)
	}
}

// What a list contains besides its items is not held, however much it is.
func TestListHeadIsBounded(t *testing.T) {
	const fields, size = 500, 64 << 10
	parts := []io.Reader{strings.NewReader(`{"kind":"PodList"`)}
	for i := range fields {
		parts = append(parts, strings.NewReader(fmt.Sprintf(`,"%d`, i)), strings.NewReader(strings.Repeat("x", size)), strings.NewReader(`":1`))
	}
	parts = append(parts, strings.NewReader(`,"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]`))
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, after := held(), uint64(0)
	parts = append(parts, readFunc(func(p []byte) (int, error) {
		after = held()
		return copy(p, "}"), io.EOF
	}))
	page, err := offline[*corev1.Pod](t, pods, SourceOptions{}).readPage(t.Context(), bodyOf(mediaJSON, io.MultiReader(parts...)), nil, nil)
	if err != nil || page.Version != "7" || len(page.Items) != 1 {
		t.Errorf("%v, %v", page, err)
	}
	if after > before && after-before > fields*size/4 {
		t.Errorf("%d bytes are held of fields that say nothing", after-before)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Unrequested protobuf is one error, and not as many bad objects as there are
// items.
func TestProtobufNotAskedFor(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		answer(w, protobufType, podList(t, protobufType, newPods(2), "9"))
	})
	source := newSource[*unstructured.Unstructured](t, s, anyPods, SourceOptions{})
	_, list := source.List(t.Context(), tarn.ListQuery{})
	_, watch := source.Watch(t.Context(), tarn.WatchQuery{})
	for _, err := range []error{list, watch} {
		if err == nil || !strings.Contains(err.Error(), "but the request was for JSON") {
			t.Error(err)
		}
	}
}

// Retry-After also counts beside a Status that does not repeat it.
func TestRetryAfterHeader(t *testing.T) {
	const busy = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429%s}`
	for _, test := range []struct {
		header, more string
		want         time.Duration
	}{
		{"7", "", 7 * time.Second},
		{"7", `,"details":{"retryAfterSeconds":9}`, 9 * time.Second},
		{"7", `,"details":{"name":"x"}`, 7 * time.Second},
		{"", "", 0}, {"soon", "", 0}, {"-5", "", 0}, {"99999999999", "", 0},
	} {
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			w.Header().Set("Retry-After", test.header)
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(w, busy, test.more)
		})
		source := newSource[*corev1.Pod](t, s, pods, SourceOptions{})
		_, list := source.List(t.Context(), tarn.ListQuery{})
		_, watch := source.Watch(t.Context(), tarn.WatchQuery{})
		for _, err := range []error{list, watch} {
			if tarn.ReasonOf(err) != tarn.ReasonBusy || tarn.RetryAfter(err) != test.want {
				t.Errorf("%+v: %v after %v: %v", test, tarn.ReasonOf(err), tarn.RetryAfter(err), err)
			}
		}
	}
}

// A tweak that replaces the options cannot make a list of a watch, and does not see
// which it is, as with client-go.
func TestTweakAndWatch(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { answer(w, jsonType, nil) })
	c := pods
	c.Tweak = func(o *metav1.ListOptions) {
		if o.Watch {
			t.Error("the tweak is told that it is a watch")
		}
		*o = metav1.ListOptions{LabelSelector: "a"}
	}
	stream, err := newSource[*corev1.Pod](t, s, c, SourceOptions{}).Watch(t.Context(), tarn.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	stream.Close()
	if got := s.seen(func(r *http.Request) string { return r.URL.RawQuery }); got[0] != "labelSelector=a&watch=true" {
		t.Error(got)
	}
}

// A slice of options may be used for several copies.
func TestReflectKeepsOptions(t *testing.T) {
	common := make([]Option, 1, 4)
	common[0] = WatchList(false)
	var set atomic.Bool
	more := append(common, func(*settings) { set.Store(true) })
	_, err := ReflectResource(t.Context(), nil, podResource, common...)
	if err == nil {
		t.Fatal("no config, no error")
	}
	if settingsOf(more); !set.Load() {
		t.Error("ReflectResource wrote to the caller's options")
	}
}

// A server that ignores the requested namespace causes bad objects, not duplicate
// objects.
func TestReflectNamespaceIgnored(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w.Header().Set("Content-Type", jsonType)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		a, b := newPod(1), newPod(2)
		a.Namespace, b.Namespace = "a", "b"
		answer(w, jsonType, podList(t, jsonType, []*corev1.Pod{a, b}, "200"))
	})
	var sections []tarn.Section[*corev1.Pod]
	for _, namespace := range []string{"a", "b"} {
		c := pods
		c.Namespace = namespace
		sections = append(sections, tarn.Section[*corev1.Pod]{Name: namespace, Source: newSource[*corev1.Pod](t, s, c, SourceOptions{}), Prefix: KeyPrefix(namespace)})
	}
	var bad atomic.Int32
	replica, err := newReplica(sections, memory.New[*corev1.Pod](), tarn.Options[*corev1.Pod]{OnBad: func(_ context.Context, b tarn.BadObject) {
		if bad.Add(1); !strings.Contains(b.Err.Error(), "does not belong to the section") {
			t.Error(b)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	added := map[tarn.Key]int{}
	seen, err := replica.Subscribe(func(c tarn.Change[*corev1.Pod]) { added[c.Key]++ }, tarn.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = replica.Run(ctx) }()
	<-seen.Synced()
	cancel()
	<-replica.Done()
	if added["a/pod-1"] != 1 || added["b/pod-2"] != 1 || replica.Len() != 2 || bad.Load() != 2 {
		t.Errorf("added %v, %d objects, %d of 2 bad", added, replica.Len(), bad.Load())
	}
}

// A caller that waits for another's lookup stops with its own context.
func TestLocateGivesUp(t *testing.T) {
	asked := make(chan struct{})
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	l := &locator{client: s.client(t, nil), kind: podKind, sem: make(chan struct{}, 1)}
	long, cancel := context.WithCancel(t.Context())
	var asker sync.WaitGroup
	asker.Go(func() { _, _, _ = l.locate(long) })
	<-asked
	short, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if _, _, err := l.locate(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cancel()
	asker.Wait()
}
