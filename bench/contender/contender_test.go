package contender

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/bench/replay"
)

// Every contender must come to hold exactly what the server has, and follow its
// changes: figures of a copy that is not equal would be worth nothing.
func TestEveryContenderHoldsWhatTheServerHas(t *testing.T) {
	source, err := podset.New("test", podset.Generate(3))
	if err != nil {
		t.Fatal(err)
	}
	set, err := source.Make(podset.ReplicaSets, 60)
	if err != nil {
		t.Fatal(err)
	}
	const updates = 70
	next, err := set.Updates(updates)
	if err != nil {
		t.Fatal(err)
	}
	want := map[podset.Key]*corev1.Pod{}
	for i, key := range set.Keys {
		want[key] = decode(t, set.Pods[i])
	}
	last := map[podset.Key]*corev1.Pod{}
	for key, pod := range want {
		last[key] = pod
	}
	for _, u := range next {
		last[u.Key] = decode(t, u.Pod)
	}
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			server, err := replay.NewOf("test", set, replay.Config{Updates: updates, Formats: []replay.Format{c.Format}})
			if err != nil {
				t.Fatal(err)
			}
			listener := httptest.NewServer(server)
			t.Cleanup(listener.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			t.Cleanup(cancel)

			f := newFollower()
			copied, err := c.Start(ctx, Setup{Config: &rest.Config{Host: listener.URL}, Changed: f.changed, Folder: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if copied.Close != nil {
				t.Cleanup(func() { copied.Close() })
			}
			if err := copied.Synced(ctx); err != nil {
				t.Fatal(err)
			}
			check(t, copied, want)

			control := replay.Control{URL: listener.URL}
			info, err := control.Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := control.Burst(ctx, c.Format, 0, updates); err != nil {
				t.Fatal(err)
			}
			f.wait(ctx, t, info.UpdateVersion(updates-1))
			check(t, copied, last)
			cancel()
		})
	}
}

// follower waits for a version.
type follower struct{ versions chan string }

func newFollower() follower { return follower{make(chan string, 10_000)} }

func (f follower) changed(object metav1.Object) { f.versions <- object.GetResourceVersion() }

func (f follower) wait(ctx context.Context, t *testing.T, version string) {
	t.Helper()
	for {
		select {
		case v := <-f.versions:
			if v == version {
				return
			}
		case <-ctx.Done():
			t.Fatalf("the handler has not seen version %s", version)
		}
	}
}

func decode(t *testing.T, raw []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := pod.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// check compares by JSON, in which all forms of an object are the same but for
// their kind.
func check(t *testing.T, c Copy, want map[podset.Key]*corev1.Pod) {
	t.Helper()
	var listed []podset.Key
	if err := c.List(func(o metav1.Object) {
		listed = append(listed, podset.Key{Namespace: o.GetNamespace(), Name: o.GetName()})
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(listed, func(a, b podset.Key) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	if len(listed) != len(want) || len(slices.Compact(listed)) != len(want) {
		t.Fatalf("%d objects are listed, want %d different ones", len(listed), len(want))
	}
	for key, pod := range want {
		object, err := c.Get(key.Namespace, key.Name)
		if err != nil {
			t.Fatal(err)
		}
		var expected any = pod
		if _, partial := object.(*metav1.PartialObjectMetadata); partial {
			expected = &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
		}
		if diff := cmp.Diff(content(t, expected), content(t, object)); diff != "" {
			t.Fatalf("%v differs from the server's (-server +copy):\n%s", key, diff)
		}
	}
}

func content(t *testing.T, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "kind")
	delete(fields, "apiVersion")
	return fields
}

func TestByName(t *testing.T) {
	for _, c := range All() {
		found, ok := ByName(c.Name)
		if !ok || found.Doc != c.Doc {
			t.Errorf("%q is found as %q (%v); names must be unique", c.Name, found.Doc, ok)
		}
	}
	if _, ok := ByName("nobody"); ok {
		t.Error("nobody was found")
	}
}
