package relay

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
)

// The origin is unreachable, changes, and forgets its past: watches stay open, and receive what
// differs, each as its selector shows it.
func TestGapIsBridged(t *testing.T) {
	origin := apiserver.New(apiserver.Options{AnyNamespace: true})
	t.Cleanup(origin.Close)
	var away atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		origin.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	r := &rig{t: t, origin: origin}
	r.start(front.URL, Options{})
	r.put(pod("stays", "a"), pod("leaves", "a"), pod("goes", "a"), pod("changes", "a"))
	r.settle()
	before := versionOf(tarnVersion(origin.Version()))
	watching, err := r.client().CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(before), LabelSelector: "l=a", AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	away.Store(true)
	front.CloseClientConnections()
	r.put(pod("leaves", "b"), pod("new", "a"), pod("changes", "a"), pod("between", "a"))
	changed := pod("changes", "a")
	changed.Annotations = map[string]string{"x": "y"}
	r.put(changed)
	for _, name := range []string{"goes", "between"} {
		if err := origin.Delete(pod(name, "")); err != nil {
			t.Fatal(err)
		}
	}
	origin.Compact()
	after := versionOf(tarnVersion(origin.Version()))
	away.Store(false)
	var got []string
	for event := range watching.ResultChan() {
		object := event.Object.(metav1.Object)
		got = append(got, fmt.Sprintf("%s %s", event.Type, object.GetName()))
		version := versionOf(tarnVersion(object.GetResourceVersion()))
		if event.Type == watch.Deleted && version != before || version < before || version > after {
			t.Errorf("%s %s at %d, the gap is from %d to %d", event.Type, object.GetName(), version, before, after)
		}
		if event.Type == watch.Bookmark {
			break
		}
	}
	// The order of deletes is that of keys.
	if text := strings.Join(got, ", "); text != "DELETED goes, DELETED leaves, ADDED new, MODIFIED changes, BOOKMARK " {
		t.Error(text)
	}
	code, body := r.read(fmt.Sprint("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=", before+1))
	if code != http.StatusGone {
		t.Errorf("a list inside of the gap: %d %s", code, body)
	}
	_, body = r.read(fmt.Sprint("/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=", before+1))
	if !strings.Contains(body, `"code":410`) {
		t.Errorf("a watch from inside of the gap: %s", body)
	}
}

// A rewind ends all watches, and watches from versions before it.
func TestRewindEndsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resource, _ := apiserver.BuiltinResource(pods)
		s := &state{name: "pods", bytes: 1 << 20, age: time.Hour, maxWait: time.Second, latest: func(context.Context, *state, bool) error { return nil }}
		reader := apiserver.NewReader(resource, s, apiserver.ReaderOptions{})
		commit := func(b tarn.Batch[Object], at tarn.Position) {
			b.Positions, b.LastContact = []tarn.Position{at}, time.Now()
			if err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		commit(tarn.Batch[Object]{Whole: true}, tarn.At("100"))
		open := newModelStream(reader, "watch=1&resourceVersion=100")
		synctest.Wait()
		commit(tarn.Batch[Object]{Gaps: []tarn.Gap{{From: "100", To: "50", Cause: tarn.GapRewound}}}, tarn.Position{Version: "50", Epoch: "2", Complete: true})
		<-open.done
		if lines := open.take(); len(lines) != 1 || !strings.Contains(string(lines[0]), `"code":410`) {
			t.Errorf("%q", lines)
		}
		old := newModelStream(reader, "watch=1&resourceVersion=49")
		<-old.done
		if lines := old.take(); len(lines) != 1 || !strings.Contains(string(lines[0]), `"code":410`) {
			t.Errorf("%q", lines)
		}
	})
}

// A relay of a relay is notified of a gap, so that it knows of it.
func TestGapIsToldToRelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &state{name: "pods", bytes: 1 << 20, age: time.Hour}
		position := func(v tarn.Version) []tarn.Position { return []tarn.Position{tarn.At(v)} }
		for _, b := range []tarn.Batch[Object]{
			{Whole: true, Positions: position("100")},
			{Positions: position("110"), Gaps: []tarn.Gap{{From: "100", To: "110", Cause: tarn.GapRead}}},
		} {
			if err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		w, err := s.Watch(context.WithValue(t.Context(), noGaps{}, true), apiserver.WatchQuery{At: apiserver.At{Match: apiserver.NotOlder, Version: 100}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, _, err := w.Next(); err == nil || !strings.Contains(err.Error(), "too old resource version") {
			t.Errorf("%v", err)
		}
	})
}

// A client whose relay has ended continues at another one, with the version that it has.
func TestResumeAtAnotherRelay(t *testing.T) {
	first := newRig(t, Options{})
	second := &rig{t: t, origin: first.origin}
	second.start(first.relay.options.Config.Host, Options{})
	first.put(pod("a", "1"))
	first.settle()
	second.settle()
	version := first.origin.Version()
	first.stop()
	first.put(pod("b", "1"))
	client, err := kubernetes.NewForConfig(second.config())
	if err != nil {
		t.Fatal(err)
	}
	resumed, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Stop()
	if e := <-resumed.ResultChan(); e.Type != watch.Added || e.Object.(metav1.Object).GetName() != "b" {
		t.Errorf("%v", e)
	}
}
