package cli

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/cmd/internal/demo"
	"github.com/tarnproject/tarn/cmd/internal/term"
	"github.com/tarnproject/tarn/cmd/internal/term/termtest"
	"github.com/tarnproject/tarn/verify"
)

// A name must not lead to another place of the server: a path with .. in it is
// one of something else, Secrets perhaps.
func TestNamesStayInTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		for _, args := range [][]string{
			{"get", "pods", ".."}, {"get", "pods", "."}, {"get", "pods/.."}, {"get", "pods", "web-1", ".."}, {"get", "pods", "a%2fb"}, {"get", "pods", ""},
			{"get", "pods", "..", "-o", "yaml"}, {"watch", "pods", ".."}, {"watch", "pods/..", "--diff"},
			{"get", "pods", "-n", ".."}, {"get", "pods", "-n", "."}, {"get", "pods", "-n", "default/secrets/.."}, {"get", "pods", "-n", "a%2fb"},
			{"watch", "pods", "-n", ".."}, {"watch", "pods", "--diff", "-n", ".."}, {"mirror", "pods", "-n", ".."},
			{"verify", "pods", "-n", ".."},
		} {
			got := r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, args...)
			if err := got.check(exitUsage, "cannot be"); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	})
}

const escapes = "evil\x1b[2J\x1b]0;title\x07"

func role(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Roles may be called almost anything, and a server may say anything. None of it
// must reach the terminal as a command.
func TestEscapesDoNotReachTheTerminal(t *testing.T) {
	clean := func(t *testing.T, what string, got result) {
		t.Helper()
		if text := got.out + got.err; strings.Contains(text, "\x1b") || !strings.Contains(text, "evil") {
			t.Errorf("%s printed %q", what, text)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, role(escapes))
		clean(t, "get", r.run("get", "clusterroles"))
		clean(t, "watch", r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, "watch", "clusterroles"))
		changed := role(escapes)
		changed.Annotations = map[string]string{"a": escapes}
		clean(t, "watch --diff", r.during(func(*lockedBuffer) {
			time.Sleep(time.Second)
			r.put(changed)
			time.Sleep(time.Second)
		}, "watch", "clusterroles", "--diff"))
		r.intercept = refuse("pods", http.StatusForbidden, metav1.StatusReasonForbidden, escapes)
		for _, command := range []string{"get", "watch", "mirror", "verify"} {
			clean(t, "a refused "+command, r.run(command, "pods"))
		}
		r.intercept = refuse("pods", http.StatusInternalServerError, metav1.StatusReasonInternalError, escapes)
		clean(t, "a mirror that fails", r.during(func(*lockedBuffer) { time.Sleep(10 * time.Second) }, "mirror", "pods"))
	})
	var out bytes.Buffer
	if err := printDetails(&out, verifiedTable{Result: verify.Result{Name: "clusterroles", Changed: 1, Differences: []verify.Difference{{Key: escapes, Kind: verify.Changed}}}}); err != nil {
		t.Fatal(err)
	}
	clean(t, "verify", result{out: out.String()})
}

// What is printed for people has no control characters of a terminal at all, those of eight
// bits and those that turn the direction of writing included, and a value cannot look like
// a row of its own.
func TestPrintedForPeople(t *testing.T) {
	const name = "evil\u009b2J\u202e\x07\x1b[1mok"
	synctest.Test(t, func(t *testing.T) {
		annotated := role(name)
		annotated.Annotations = map[string]string{"a": "one\nforged   row"}
		r := newRig(t, annotated)
		for _, args := range [][]string{
			{"get", "clusterroles"}, {"get", "clusterroles", "-o", "wide"}, {"get", "clusterroles", "-o", "name"},
			{"get", "clusterroles", "-o", "custom-columns=NAME:.metadata.name,A:.metadata.annotations.a"},
			{"query", "clusterroles"}, {"query", "clusterroles", "--where", "metadata.annotations.a!=x"},
		} {
			got := r.run(args...)
			if strings.ContainsAny(got.out, "\u009b\u202e\x07\x1b") || !strings.Contains(got.out, "evil") || strings.Contains(got.out, "\nforged") {
				t.Errorf("%q printed %q", args, got.out)
			}
		}
	})
}

// An error that wraps two others is still one error, and says all that it says.
func TestErrorsThatWrapSeveralAreOne(t *testing.T) {
	var errOut bytes.Buffer
	a := &app{errOut: &errOut}
	one, two := errors.New("refused"), errors.New("too late")
	a.complain(errors.Join(fmt.Errorf("pods: not synced: %w (gave up: %w)", one, two), two))
	if want := "tarn: pods: not synced: refused (gave up: too late)\ntarn: too late\n"; errOut.String() != want {
		t.Errorf("said %q, want %q", errOut.String(), want)
	}
}

func TestEmptyNamesOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, args := range [][]string{{"get", ""}, {"get", "pods,"}, {"get", ",pods"}, {"watch", "pods,,nodes"}, {"mirror", "pods", ""}, {"verify", ","}} {
			if err := r.run(args...).check(exitUsage, "empty", "pods,deployments"); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	})
}

// A template that does not fit is one clear line, and not all objects that it was
// tried on.
func TestTemplatesThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		for format, word := range map[string]string{
			"jsonpath={.items[::0]}":                             "step must be > 0",
			"jsonpath={end}":                                     "not in range",
			"go-template={{index .items 99}}":                    "index out of range",
			"go-template={{range .items}}x{{call .kind}}{{end}}": "non-function",
			"custom-columns=A:.kind,B:.spec.containers[7].name":  "out of bounds",
		} {
			got := r.run("get", "pods", "-o", format)
			if err := got.check(exitFailed, word); err != nil || strings.Contains(got.err, "nginx") {
				t.Errorf("%s: %v %s", format, err, got)
			}
		}
	})
}

// What -w would leave unheeded is refused.
func TestGetWatchRefusesUnsupportedFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pod("web-1", corev1.PodRunning))
		for _, flag := range []string{"--no-headers", "--show-labels", "--show-managed-fields", "--show-secrets", "--sort-by=.metadata.name"} {
			got := r.during(func(*lockedBuffer) { time.Sleep(time.Second) }, "get", "pods", "-w", flag)
			if err := got.check(exitUsage, strings.Split(flag, "=")[0], "-w"); err != nil {
				t.Errorf("%s: %v", flag, err)
			}
		}
	})
}

// A verification that is late says so, wherever it was; one that is not allowed
// says so once.
func TestVerifySaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.intercept = func(request *http.Request, _ http.RoundTripper) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		if err := r.run("verify", "pods", "--timeout", "3s").check(exitUnknown, "not done within 3s; --timeout allows more"); err != nil {
			t.Error(err)
		}
		r.intercept = refuse("pods", http.StatusForbidden, metav1.StatusReasonForbidden, "this is not for you")
		if got := r.run("verify", "pods"); got.code != exitUnknown || strings.Count(got.out, "this is not for you") != 1 {
			t.Errorf("%s", got)
		}
	})
}

// What a demonstration says of faults takes room from the tables, and not from
// what says that there are more.
func TestDemoInALowTerminal(t *testing.T) {
	session, err := demo.Open(t.Context(), demo.SessionOptions{
		Config:  demo.Config{Pods: 5, Databases: 1, Seed: 1, Logger: slog.New(slog.DiscardHandler)},
		Address: "127.0.0.1:0", Faults: true, FaultSeed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	screen := termtest.New(100, 12)
	view := &demoView{session: session, live: term.NewLive(screen)}
	view.found.Store(&compared{time.Now(), demo.Finding{Tables: 13, Equal: 13}})
	view.table()(time.Now())
	if text := screen.String(); !strings.Contains(text, "all 13 copies equal") || !strings.Contains(text, "others") {
		t.Errorf("drawn:\n%s", text)
	}
}
