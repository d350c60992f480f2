package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/internal/testsize"
)

// A relay that is killed and starts again from its directory reads nothing from the origin,
// and answers watches from older versions.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Directory: dir})
	first := r.origin.Version()
	for i := range 20 {
		r.put(pod(fmt.Sprint("p", i%5), fmt.Sprint(i)))
	}
	r.settle()
	exact := "/api/v1/pods?resourceVersionMatch=Exact&limit=4&resourceVersion=" + r.origin.Version()
	_, page := r.read(exact)
	rest := exact[:len("/api/v1/pods?")] + "limit=4&continue=" + continueOf(t, page)
	_, second := r.read(rest)
	if err := r.origin.Delete(pod("p4", "")); err != nil {
		t.Fatal(err)
	}
	r.settle()
	const all = "/api/v1/pods?resourceVersion=0"
	watch := "/api/v1/pods?watch=1&timeoutSeconds=2&labelSelector=l!%3D3&resourceVersion=" + first
	_, before := r.read(all)
	_, watched := r.read(watch)
	if _, err := New(Options{Config: r.config(), Resources: r.relay.options.Resources, Gate: Everybody{}, Directory: dir}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second relay: %v", err)
	}
	r.stop()
	r.requests()
	r.start(r.relay.options.Config.Host, Options{Directory: dir})
	_, after := r.read(all)
	if after != before {
		t.Errorf("after the restart:\n%s\nbefore:\n%s", after, before)
	}
	if _, again := r.read(exact); again != page {
		t.Errorf("a list at a version of before the restart:\n%s\nbefore:\n%s", again, page)
	}
	if code, again := r.read(rest); again != second || code != http.StatusOK || !strings.Contains(again, `"name":"p4"`) {
		t.Errorf("%d: a page of a list of before the restart:\n%s\nbefore:\n%s", code, again, second)
	}
	if _, again := r.read(watch); again != watched || !strings.Contains(again, `"DELETED"`) {
		t.Errorf("after the restart:\n%s\nbefore:\n%s", again, watched)
	}
	for _, request := range r.requests() {
		if !strings.Contains(request, "watch=") && !strings.Contains(request, "limit=1") && !strings.Contains(request, "kube-system") || strings.Contains(request, "sendInitialEvents") {
			t.Errorf("the origin was asked: %s", request)
		}
	}
	r.put(pod("new", "1"))
	r.settle()
	if _, body := r.read(watch); !strings.Contains(body, `"name":"new"`) || !strings.HasPrefix(body, watched[:1000]) {
		t.Errorf("a watch over the restart:\n%s", body)
	}
}

// A relay that could not be made does not hold its directory.
func TestRefusedRelayLeavesItsDirectory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close the file some time
	options := Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Gate: Everybody{}, Directory: t.TempDir()}
	unknown := corev1.SchemeGroupVersion.WithResource("wheels")
	options.Resources = []schema.GroupVersionResource{pods, unknown}
	if _, err := New(options); err == nil || !strings.Contains(err.Error(), "wheels") {
		t.Fatal(err)
	}
	options.Resources = []schema.GroupVersionResource{pods}
	r, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = r.Run(ctx)
}

func continueOf(t *testing.T, body string) string {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Continue == "" {
		t.Fatalf("%v: %s", err, body)
	}
	return list.Continue
}

// diskState is a state with a journal, which is written and read without a replica.
func diskState(t *testing.T, dir string, memory int64) (*durableState, tarn.Kept) {
	t.Helper()
	return boundedState(t, dir, memory, journalBounds{bytes: 1 << 40, age: 24 * time.Hour})
}

func boundedState(t *testing.T, dir string, memory int64, bounds journalBounds) (*durableState, tarn.Kept) {
	t.Helper()
	of, _ := apiserver.BuiltinResource(pods)
	logger := slog.New(slog.DiscardHandler)
	s := &durableState{
		state: &state{name: "pods", bytes: memory, age: time.Hour, maxWait: time.Millisecond, logger: logger},
		open:  func() (*journal, restored, error) { return openJournal(dir, of, bounds, logger) },
	}
	kept, err := s.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, kept
}

// A client that was disconnected for an hour at 100 updates a second resumes without a list. The
// memory of the past is bounded by 1 MiB, and by 1 MiB that is not on disk yet. With -short
// the client is disconnected for seven minutes.
func TestHourAway(t *testing.T) {
	updates := testsize.Of(360_000, 40_000)
	synctest.Test(t, func(t *testing.T) {
		s, _ := diskState(t, t.TempDir(), 1<<20)
		defer s.Close()
		m := &model{resource: s2resource(t), version: 100}
		commit := func(b tarn.Batch[Object]) {
			b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(versionString(m.version)))}, time.Now()
			if err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		commit(tarn.Batch[Object]{Whole: true})
		for i := range updates / 10 {
			time.Sleep(100 * time.Millisecond)
			var changes []tarn.Change[Object]
			for n := range 10 {
				m.version++
				o := m.object(fmt.Sprint("p", (10*i+n)%1000), "uid", "a")
				changes = append(changes, tarn.Change[Object]{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)})
			}
			commit(tarn.Batch[Object]{Changes: changes})
		}
		disk, err := s.disk()
		if in := s.stats(); in.logBytes > 3<<20 || err != nil {
			t.Errorf("the past takes %d bytes of memory; %v", in.logBytes, err)
		}
		w, err := s.Watch(t.Context(), apiserver.WatchQuery{At: apiserver.At{Match: apiserver.NotOlder, Version: 100}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		want := int64(101)
		for want <= m.version {
			events, _, err := w.Next()
			if err != nil || len(events) == 0 {
				t.Fatalf("%d events after %d, %v", len(events), want, err)
			}
			for _, e := range events {
				if e.Version != want || e.Object.Version() != want {
					t.Fatalf("version %d, want %d", e.Version, want)
				}
				want++
			}
		}
		t.Logf("%d updates in %d bytes on disk", updates, disk)
	})
}

func s2resource(t *testing.T) *apiserver.Resource {
	of, ok := apiserver.BuiltinResource(pods)
	if !ok {
		t.Fatal("no pods")
	}
	return of
}

// Whatever the end of the newest log looks like, a journal begins with a state that it had,
// and continues from there.
func TestTornJournal(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, _ := diskState(t, dir, 1<<20)
		m := &model{resource: s2resource(t), version: 100}
		position := func() []tarn.Position { return []tarn.Position{tarn.At(tarn.Version(versionString(m.version)))} }
		if err := s.Commit(t.Context(), tarn.Batch[Object]{Whole: true, Positions: position(), LastContact: time.Now()}); err != nil {
			t.Fatal(err)
		}
		states := map[string]string{"100": ""}
		for range 50 {
			time.Sleep(2 * time.Second)
			m.version++
			o := m.object(fmt.Sprint("p", m.version%7), "uid", "a")
			err := s.Commit(t.Context(), tarn.Batch[Object]{Positions: position(), LastContact: time.Now(), Changes: []tarn.Change[Object]{{Type: tarn.Update, Key: tarn.Key(o.Key()), Object: o, Version: text(o)}}})
			if err != nil {
				t.Fatal(err)
			}
			states[versionString(m.version)] = contentText(s.state)
		}
		s.Close()
		logs, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("%q, %v", logs, err)
		}
		whole, err := os.ReadFile(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		for size := 0; size <= len(whole); size += 97 {
			for _, damage := range []string{"cut", "zeros", "flip"} {
				data := append([]byte(nil), whole[:size]...)
				switch {
				case damage == "zeros":
					data = append(data, make([]byte, 500)...)
				case damage == "flip" && size > 0:
					data = append([]byte(nil), whole...)
					data[size-1] ^= 0x40
				}
				if err := os.WriteFile(logs[0], data, 0o600); err != nil {
					t.Fatal(err)
				}
				s, kept := diskState(t, dir, 1<<20)
				if len(kept.Positions) != 1 || states[string(kept.Version())] != contentText(s.state) {
					t.Fatalf("%s at %d: version %s with\n%s\nwant\n%s", damage, size, kept.Version(), contentText(s.state), states[string(kept.Version())])
				}
				if size == len(whole) && damage == "cut" && kept.Version() != "150" {
					t.Errorf("an undamaged journal begins at %s", kept.Version())
				}
				s.journal.close()
			}
		}
	})
}

func contentText(s *state) string {
	var all []string
	for _, o := range s.content.objects {
		all = append(all, fmt.Sprint(o.Key(), "@", o.Version()))
	}
	return strings.Join(all, " ")
}

// An origin that has forgotten what happened while the relay was stopped is a gap, which is
// bridged for watches from before.
func TestDirectoryAfterGap(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Directory: dir})
	r.put(pod("goes", "a"), pod("stays", "a"))
	r.settle()
	before := versionOf(tarnVersion(r.origin.Version()))
	r.stop()
	r.put(pod("new", "a"), pod("between", "a"))
	for _, name := range []string{"goes", "between"} {
		if err := r.origin.Delete(pod(name, "")); err != nil {
			t.Fatal(err)
		}
	}
	r.origin.Compact()
	r.start(r.relay.options.Config.Host, Options{Directory: dir})
	r.settle()
	_, body := r.read(fmt.Sprint("/api/v1/pods?watch=1&timeoutSeconds=2&labelSelector=l%3Da&resourceVersion=", before))
	var got []string
	for line := range strings.Lines(body) {
		var e modelEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type+" "+e.Object.Metadata.Name)
		if e.Type == "DELETED" && e.Object.Metadata.ResourceVersion != fmt.Sprint(before) {
			t.Errorf("%s", line)
		}
	}
	if text := strings.Join(got, ", "); text != "DELETED goes, ADDED new" {
		t.Error(text)
	}
	if _, body := r.read(fmt.Sprint("/api/v1/pods?watch=1&timeoutSeconds=2&resourceVersion=", before+1)); !strings.Contains(body, `"code":410`) {
		t.Errorf("a watch from inside of the gap: %s", body)
	}
}
