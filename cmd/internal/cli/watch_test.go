package cli

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
)

func TestWatchPrintsALineForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodRunning))
		got := r.during(func(*lockedBuffer) {
			time.Sleep(10 * time.Second)
			r.put(pod("web-1", corev1.PodRunning))
			time.Sleep(time.Second)
			changed := pod("web-1", corev1.PodRunning)
			changed.Annotations = map[string]string{"a": "b"}
			r.put(changed)
			time.Sleep(time.Second)
			r.put(pod("web-3", corev1.PodPending))
			time.Sleep(time.Second)
			r.delete(pod("web-2", ""))
			time.Sleep(time.Second)
		}, "watch", "pods")
		want := `2000-01-01T00:00:00Z ADDED    pods/default/web-1 READY=0/1 STATUS=Pending RESTARTS=0
2000-01-01T00:00:00Z ADDED    pods/default/web-2 READY=0/1 STATUS=Running RESTARTS=0
2000-01-01T00:00:10Z MODIFIED pods/default/web-1 STATUS=Pending → Running
2000-01-01T00:00:11Z MODIFIED pods/default/web-1 (no column differs)
2000-01-01T00:00:12Z ADDED    pods/default/web-3 READY=0/1 STATUS=Pending RESTARTS=0
2000-01-01T00:00:13Z DELETED  pods/default/web-2 READY=0/1 STATUS=Running RESTARTS=0
`
		if got.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", got, want)
		}
	})
}

func TestWatchOnlyLeavesOutWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodRunning))
		got := r.during(func(*lockedBuffer) {
			time.Sleep(10 * time.Second)
			r.put(pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodFailed), pod("web-3", corev1.PodFailed))
			time.Sleep(time.Second)
		}, "watch", "pods", "web-1", "web-2", "--watch-only")
		if again := r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, "get", "pods/web-1", "-w"); !strings.Contains(again.out, "ADDED    pods/default/web-1") || again.code != 0 {
			t.Errorf("get -w prints\n%s", again)
		}
		want := `2000-01-01T00:00:10Z MODIFIED pods/default/web-1 STATUS=Pending → Running
2000-01-01T00:00:10Z MODIFIED pods/default/web-2 STATUS=Running → Failed
`
		if got.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", got, want)
		}
	})
}

func TestWatchDiff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), secret("login", "old"))
		got := r.during(func(*lockedBuffer) {
			time.Sleep(10 * time.Second)
			changed := pod("web-1", corev1.PodRunning)
			changed.Labels["tier"] = "front"
			changed.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "envoy"}}, changed.Spec.Containers...)
			changed.Spec.Containers[1].Image = "nginx:2"
			r.put(changed)
			time.Sleep(time.Second)
			r.put(pod("web-2", corev1.PodPending))
			time.Sleep(time.Second)
			r.delete(pod("web-1", ""))
			time.Sleep(time.Second)
			r.put(secret("login", "new"))
			time.Sleep(time.Second)
		}, "watch", "pods,secrets", "--diff")
		golden(t, "watch-diff", got.String())
		got = r.during(func(*lockedBuffer) {
			time.Sleep(10 * time.Second)
			r.put(secret("login", "newer"))
			time.Sleep(time.Second)
		}, "watch", "secret/login", "--diff", "--show-secrets")
		if !strings.Contains(got.out, "  data.password: bmV3 → bmV3ZXI=\n") {
			t.Errorf("--show-secrets shows no values:\n%s", got)
		}
	})
}

func TestWatchDrawsATable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodRunning))
		r.screen = termtest.New(70, 12)
		var b strings.Builder
		show := func(what string) { b.WriteString("-- " + what + " --\n" + r.screen.Styled()) }
		got := r.during(func(*lockedBuffer) {
			time.Sleep(time.Minute)
			show("at first")
			r.put(pod("web-1", corev1.PodRunning), pod("web-3", corev1.PodPending))
			r.delete(pod("web-2", ""))
			time.Sleep(2 * time.Second)
			show("changes stand out")
			time.Sleep(4 * time.Second)
			show("and fade")
			r.screen.Resize(39, 12)
			time.Sleep(2 * time.Second)
			show("too small by now")
			r.screen.Resize(60, 6)
			for _, name := range []string{"web-4", "web-5", "web-6"} {
				r.put(pod(name, corev1.PodRunning))
				time.Sleep(time.Second)
			}
			time.Sleep(10 * time.Second)
			show("more than fits")
		}, "watch", "pods")
		show("after Ctrl-C")
		golden(t, "watch-live", b.String())
		if got.code != 0 || got.out != "" || got.err != "" {
			t.Errorf("ended with %v", got)
		}
	})
}

func TestWatchDrawsSeveralTablesWithNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), deployment("web"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
		r.screen = termtest.New(90, 30).WithoutColour()
		r.during(func(*lockedBuffer) { time.Sleep(90 * time.Second) }, "watch", "deployments,pods,nodes", "-A", "-o", "wide")
		golden(t, "watch-several", r.screen.String())
	})
}

// A resource that is named twice is watched once.
func TestWatchSeveralByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodPending), pod("web-3", corev1.PodPending), deployment("web"))
		for _, flag := range []string{"", "--diff"} {
			got := r.during(func(*lockedBuffer) {
				time.Sleep(time.Second)
				r.put(pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodRunning), pod("web-3", corev1.PodRunning))
				time.Sleep(time.Second)
				r.put(pod("web-1", corev1.PodPending), pod("web-2", corev1.PodPending), pod("web-3", corev1.PodPending))
				time.Sleep(time.Second)
			}, slices.DeleteFunc([]string{"watch", "pods/web-1", "deployments/web", "pods/web-3", flag}, func(arg string) bool { return arg == "" })...)
			for name, want := range map[string]int{"pods/default/web-1": 2, "pods/default/web-2": 0, "pods/default/web-3": 2} {
				if n := strings.Count(got.out, "MODIFIED "+name); n != want || got.code != 0 {
					t.Errorf("%q: %s was modified %d times, want %d:\n%s", flag, name, n, want, got)
				}
			}
		}
	})
}

// The table is kept by the engine: it survives what a watch does not.
func TestWatchSurvivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending))
		var down atomic.Bool
		r.intercept = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if down.Load() {
				return nil, syscall.ECONNREFUSED
			}
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") != "" {
				response.Body = &cutBody{ReadCloser: response.Body, cut: &down}
			}
			return response, err
		}
		r.screen = termtest.New(160, 12).WithoutColour()
		got := r.during(func(*lockedBuffer) {
			time.Sleep(10 * time.Second)
			down.Store(true)
			r.put(pod("web-1", corev1.PodRunning)) // wakes the watch up, which finds itself cut
			time.Sleep(20 * time.Second)
			if screen := r.screen.String(); !strings.Contains(screen, "ago: ") || !strings.Contains(screen, "connection refused") || !strings.Contains(screen, "Pending") {
				t.Errorf("while the server is unreachable, the view shows\n%s", screen)
			}
			r.put(pod("web-2", corev1.PodRunning))
			r.server.Compact()
			down.Store(false)
			time.Sleep(time.Minute)
			if screen := r.screen.String(); !strings.Contains(screen, "2 objects") || strings.Contains(screen, "Pending") || !strings.Contains(screen, "watching, ") {
				t.Errorf("after it came back, the view shows\n%s", screen)
			}
		}, "watch", "pods")
		if got.code != 0 {
			t.Errorf("ended with %v", got)
		}
	})
}

// cutBody is a body that breaks off once the server is down.
type cutBody struct {
	io.ReadCloser
	cut *atomic.Bool
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.cut.Load() {
		return 0, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return n, err
}
