package cli

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// If a directory has several clusters, replay serves the past of one: its objects under their
// own names, its changes, and nothing of the others.
func TestReplayOfAFleet(t *testing.T) {
	east, west := startCluster(t, "web-1"), startCluster(t, "web-1", "db-1")
	configs, to := t.TempDir(), filepath.Join(t.TempDir(), "replica")
	leadTo(t, filepath.Join(configs, "east.yaml"), east)
	leadTo(t, filepath.Join(configs, "west.yaml"), west)
	r := newRig(t)
	app := r.app(nil, &lockedBuffer{})
	app.connect = nil
	var since time.Time
	ended := commandUntil(t.Context(), app, regexp.MustCompile(` at (https?://\S+/)$`), func(address string) {
		shown := func(parts ...string) func() bool {
			return func() bool {
				_, body := fetch(t, address+"api/tables/pods?limit=100", "")
				return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(body, p) })
			}
		}
		eventually(t, "all pods", shown("east/default/web-1", "west/default/web-1", "west/default/db-1"))
		eventually(t, "the history has begun", func() bool {
			return strings.Contains(r.run("sql", "--from", to, "SELECT 'pods: ' || count(*) FROM pods").out, "pods: 3")
		})
		since = time.Now().Add(-time.Millisecond) // a history counts in milliseconds
		for _, put := range []struct {
			name string
			err  error
		}{
			{"east", east.Put(pod("web-1", corev1.PodFailed), pod("web-2", corev1.PodPending))},
			{"west", west.Put(pod("db-1", corev1.PodFailed), pod("db-2", corev1.PodPending))},
		} {
			if put.err != nil {
				t.Fatalf("%s: %v", put.name, put.err)
			}
		}
		eventually(t, "the changes", shown("east/default/web-2", "west/default/db-2"))
	}, "serve", "pods", "-A", "--kubeconfig-dir", configs, "--to", to, "--history", "1h", "--listen=127.0.0.1:0", "--no-page-token")
	if ended.code != 0 {
		t.Fatalf("ended with\n%s", ended)
	}
	for _, test := range []struct{ context, then, now string }{
		{"east", "The past of 1 resource", "web-1 Failed, web-2 Pending"},
		{"west", "2 objects lived then", "db-1 Failed, db-2 Pending, web-1 Running"},
	} {
		file := filepath.Join(t.TempDir(), "past.kubeconfig")
		ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
		out, errOut := &alarm{text: "This was the past: "}, &lockedBuffer{}
		var now []string
		out.ring = func() {
			defer interrupt()
			now = podsOf(t, file)
		}
		a := r.app(nil, errOut)
		a.out = out
		code := a.main(ctx, []string{"replay", "--from", to, "--context", test.context, "--since", at(since), "--speed", "0", "--kubeconfig-out", file})
		interrupt()
		if got := strings.Join(now, ", "); code != exitOK || got != test.now || !strings.Contains(out.String(), test.then) || !strings.Contains(out.String(), "This was the past: 2 changes.") {
			t.Errorf("%s: code %d, %s, want %s\n%s%s", test.context, code, got, test.now, out.String(), errOut.String())
		}
	}
	for want, args := range map[string][]string{
		"say with --context which one to serve: east, west": {},
		`has no cluster "wets"; it has east, west`:          {"--context", "wets"},
	} {
		if got := r.run(append([]string{"replay", "--from", to, "--since", "1h"}, args...)...); got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%q: code %d: %s", args, got.code, got.err)
		}
	}
}

// podsOf are the pods that a client of a kubeconfig sees.
func podsOf(t *testing.T, kubeconfig string) (seen []string) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Error(err)
		return nil
	}
	list, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, p := range list.Items {
		seen = append(seen, p.Name+" "+string(p.Status.Phase))
	}
	slices.Sort(seen)
	return seen
}
