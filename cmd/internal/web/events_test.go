package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tarnproject/tarn/internal/render"
)

// stream is a client of /api/events.
type stream struct {
	t      *testing.T
	events chan [2]string
	close  context.CancelFunc
}

func (r *rig) follow(path string, change ...func(*http.Request)) *stream {
	r.t.Helper()
	server := httptest.NewServer(r.site)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range change {
		c(request)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("%s: %d %s", path, answer.StatusCode, body(r.t, answer))
	}
	s := &stream{r.t, make(chan [2]string, 100), cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		name := ""
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.events <- [2]string{name, text}
			}
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		for range s.events {
		}
		<-done
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// event waits for the next one of a name.
func (s *stream) event(name string) string {
	s.t.Helper()
	for e := range s.events {
		if e[0] == name {
			return e[1]
		}
	}
	s.t.Fatalf("the stream ended without %s", name)
	return ""
}

func event[T any](s *stream, name string) (value T) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.event(name)), &value); err != nil {
		s.t.Fatal(err)
	}
	return value
}

// A stream may name any object. Its watch ends with the stream.
func TestStreamsLeaveNothingBehind(t *testing.T) {
	r := newRig(t, rigOptions{})
	table, _ := r.mirror.Table("pods")
	for i := range 10 {
		s := r.follow(fmt.Sprintf("/api/events?table=pods&object=pods/nowhere/absent-%d", i))
		if state := event[objectState](s, "object"); !state.Gone {
			t.Errorf("there is %+v", state)
		}
		if table.Store().Watching() == 0 {
			t.Error("nothing is watched while a page follows")
		}
		s.close()
		for table.Store().Watching() > 0 { // until the test's own time is over
			r.ask("/healthz")
		}
	}
}

func TestEventsOfAnObject(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{replicaSet("default", "web"), pod("default", "web-1", phase(corev1.PodPending))}})
	s := r.follow("/api/events?object=pods/default/web-1")
	if got := event[overview](s, "overview"); len(got.Tables) != 5 {
		t.Errorf("the overview has %d tables", len(got.Tables))
	}
	first := event[objectState](s, "object")
	if first.Status != "Pending" || len(first.Edits) != 0 || len(first.Lines) == 0 || first.Created == "" {
		t.Errorf("at first: %+v", first)
	}
	if got := event[related](s, "related"); len(got.Owners) != 0 {
		t.Errorf("owners: %+v", got.Owners)
	}

	table, _ := r.mirror.Table("replicasets.apps")
	set, _ := table.Store().Get("default/web")
	r.put(pod("default", "web-1", ownedBy("ReplicaSet", "web", set.GetUID()), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }))
	next := event[objectState](s, "object")
	got := map[string]render.Edit{}
	for _, e := range next.Edits {
		got[e.Path] = e
	}
	for _, want := range []render.Edit{
		{Path: "spec.containers[main].image", Old: "app:1", New: "app:2", Op: "change"},
		{Path: "status.phase", Old: "Pending", New: "Running", Op: "change"},
	} {
		if diff := cmp.Diff(want, got[want.Path]); diff != "" {
			t.Errorf("want -, got +\n%s", diff)
		}
	}
	if got := event[related](s, "related"); len(got.Owners) != 1 || got.Owners[0].Key != "default/web" {
		t.Errorf("owners: %+v", got.Owners)
	}

	r.remove(pod("default", "web-1"))
	if got := event[objectState](s, "object"); !got.Gone {
		t.Errorf("when it went: %+v", got)
	}
	r.put(pod("default", "web-1"))
	if got := event[objectState](s, "object"); !got.Again || got.Gone {
		t.Errorf("when another one came: %+v", got)
	}
}

func TestEventsOfATable(t *testing.T) {
	r := newRig(t, rigOptions{})
	s := r.follow("/api/events?table=pods")
	if got := event[tableState](s, "table"); got.Objects != 0 {
		t.Errorf("at first: %+v", got)
	}
	r.put(pod("default", "web-1"))
	if got := event[tableState](s, "table"); got.Objects != 1 {
		t.Errorf("when one came: %+v", got)
	}
}

// wire is a client that the test looks at from within.
type wire struct {
	http.ResponseWriter
	written  strings.Builder
	deadline time.Time
	fail     error
}

func (w *wire) Header() http.Header { return http.Header{} }
func (w *wire) WriteHeader(int)     {}
func (w *wire) Flush()              {}
func (w *wire) Write(p []byte) (int, error) {
	if w.fail != nil {
		return 0, w.fail
	}
	return w.written.Write(p)
}
func (w *wire) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// However often an object changes, a client gets the newest state at most once per
// interval, with the differences from the state that it got before.
func TestEventsAreFolded(t *testing.T) {
	r := newRig(t, rigOptions{objects: []runtime.Object{pod("default", "web-1", func(p *corev1.Pod) { p.Labels["n"] = "start" })}})
	table, _ := r.mirror.Table("pods")
	w := &objectWatch{site: r.site, table: table, key: "default/web-1"}
	if _, ok := w.next(t.Context()); !ok {
		t.Fatal("the first state is not told")
	}
	for i := range 100 {
		r.put(pod("default", "web-1", func(p *corev1.Pod) { p.Labels["n"] = fmt.Sprint(i) }))
	}
	state, ok := w.next(t.Context())
	want := []render.Edit{{Path: "metadata.labels.n", Old: "start", New: "99", Op: "change"}}
	if diff := cmp.Diff(want, state.Edits); !ok || diff != "" {
		t.Errorf("%t, want -, got +\n%s", ok, diff)
	}
	if again, ok := w.next(t.Context()); ok {
		t.Errorf("told twice: %+v", again)
	}
}

// A client that does not read is dropped, and its place is free again.
func TestEventsSlowClient(t *testing.T) {
	r := newRig(t, rigOptions{})
	synctest.Test(t, func(t *testing.T) {
		w := &wire{fail: errors.New("the deadline has passed")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events", nil)
		r.site.events(w, request)
		if got := time.Until(w.deadline); got != clientPatience {
			t.Errorf("a client has %s, want %s", got, clientPatience)
		}
		if r.site.streams.open != 0 || len(r.site.streams.byClient) != 0 {
			t.Error("its place is not free")
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	r := newRig(t, rigOptions{})
	for i := range maxStreams {
		client := fmt.Sprint("somebody else ", i/maxOwnStreams)
		if i < maxOwnStreams {
			client = "address 192.0.2.1" // of requests in this test
		}
		leave, problem := r.site.streams.enter(client)
		if problem != nil {
			t.Fatalf("%d: %v", i, problem)
		}
		t.Cleanup(leave)
		if i != maxOwnStreams {
			continue
		}
		if answer := r.ask("/api/events"); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" || !strings.Contains(answer.Body.String(), "close one") {
			t.Errorf("one client: %d %s", answer.Code, answer.Body)
		}
	}
	answer := r.ask("/api/events", func(r *http.Request) { r.RemoteAddr = "192.0.2.2:1" })
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" || !strings.Contains(answer.Body.String(), "close one") {
		t.Errorf("all: %d %s", answer.Code, answer.Body)
	}
}

func TestEventsHead(t *testing.T) {
	r := newRig(t, rigOptions{})
	answer := r.ask("/api/events", func(r *http.Request) { r.Method = http.MethodHead })
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d %v", answer.Code, answer.Header())
	}
}

// The overview comes once a second.
func TestPulse(t *testing.T) {
	r := newRig(t, rigOptions{})
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+beat/2)
		defer cancel()
		r.site.events(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events", nil))
		if n := strings.Count(w.written.String(), "event: overview"); n != 11 {
			t.Errorf("%d in 10 s", n)
		}
	})
}
