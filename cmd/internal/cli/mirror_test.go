package cli

import (
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

// slowly lets reads of a whole collection take their time, and not end at a moment at
// which a view is drawn: either could then be first.
func slowly(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if query := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/pods") && (query.Get("sendInitialEvents") != "" || query.Get("limit") != "1") {
		time.Sleep(5100 * time.Millisecond)
	}
	return next.RoundTrip(r)
}

func TestMirrorPrintsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodPending), deployment("web"))
		var down atomic.Bool
		r.intercept = func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if down.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return slowly(request, next)
		}
		got := r.during(func(*lockedBuffer) {
			time.Sleep(10*time.Second + time.Millisecond)
			r.delete(pod("web-2", ""))
			down.Store(true)
			time.Sleep(11 * time.Minute) // until the watches come to their end
			down.Store(false)
			time.Sleep(2 * time.Minute)
		}, "mirror", "pods", "deployments", "--interval", "5m")
		golden(t, "mirror-lines", firsts(got.String()))
	})
}

// firsts keeps the first of lines that differ in their times only: how often a
// server is asked is left to chance.
func firsts(text string) string {
	var b strings.Builder
	var anytime []string
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		at, said, _ := strings.Cut(line, " ")
		if strings.Contains(said, " old\n") {
			continue
		}
		if seen[said] {
			continue
		}
		seen[said] = true
		if strings.Contains(said, "refused") || strings.Contains(said, "recovered") {
			anytime = append(anytime, "… "+said)
			continue
		}
		b.WriteString(at + " " + said)
	}
	slices.Sort(anytime)
	return b.String() + strings.Join(anytime, "")
}

func TestMirrorDrawsProgressAndTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending), pod("web-2", corev1.PodPending), deployment("web"))
		r.intercept = slowly
		r.screen = termtest.New(100, 12)
		var b strings.Builder
		show := func(what string) { b.WriteString("-- " + what + " --\n" + r.screen.Styled()) }
		got := r.during(func(*lockedBuffer) {
			time.Sleep(3 * time.Second)
			show("while it syncs")
			time.Sleep(27 * time.Second)
			show("synced")
			for range 20 {
				r.put(pod("web-1", corev1.PodRunning))
				r.put(pod("web-1", corev1.PodPending))
				time.Sleep(500 * time.Millisecond)
			}
			show("busy")
		}, "mirror", "pods,deployments")
		golden(t, "mirror-live", b.String())
		if got.code != 0 || got.out != "" || got.err != "" {
			t.Errorf("ended with %v", got)
		}
	})
}

// What comparing with the server finds stands in the table's own line.
func TestMirrorDrawsWhatItVerifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, configMap("one", "right"))
		r.intercept = lie
		r.screen = termtest.New(160, 10).WithoutColour()
		r.during(func(*lockedBuffer) { time.Sleep(3 * time.Minute) }, "mirror", "configmaps", "--verify=1m")
		if screen := r.screen.String(); !strings.Contains(screen, "   the copy is not as the server has it") || !strings.Contains(screen, "configmaps: it was read anew and still differs") {
			t.Errorf("the view shows\n%s", screen)
		}
	})
}

func configMap(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"text": text}}
}

// What does not fit is said to be there, and what is in trouble is not left out.
func TestMirrorOfManyResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodPending))
		r.intercept = refuse("secrets", http.StatusForbidden, "Forbidden", `secrets is forbidden: user "ops" cannot list resource "secrets"`)
		r.screen = termtest.New(160, 10).WithoutColour()
		r.during(func(*lockedBuffer) { time.Sleep(5 * time.Second) }, "mirror", "*", "-A")
		screen := r.screen.String()
		lines := strings.Split(strings.TrimSpace(screen), "\n")
		if len(lines) != 9 || !strings.Contains(lines[2], "secrets") || !strings.Contains(lines[2], "not allowed to list or watch") ||
			!strings.HasPrefix(lines[7], "… and ") || !strings.HasPrefix(lines[8], "secrets: grant the verbs list and watch") {
			t.Errorf("the view shows\n%s", screen)
		}
	})
}

// A mirror of resources that the user may not read ends with an error.
func TestMirrorGivesUpWhatIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = refuse("pods", http.StatusForbidden, "Forbidden", `pods is forbidden: user "ops" cannot list resource "pods"`)
		for _, args := range []string{"mirror pods", "watch pods", "watch pods --diff"} {
			got := r.run(strings.Fields(args)...)
			if got.code != exitFailed || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "tarn: ") || !strings.Contains(got.err, "grant") {
				t.Errorf("%s:\n%s", args, got)
			}
		}
	})
}
