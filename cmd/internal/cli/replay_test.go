package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/changelog"
	"github.com/tarnproject/tarn/cmd/internal/mirror"
)

// recordingStage notes what is shown, and when.
type recordingStage struct {
	began time.Time
	shown []string
}

func (s *recordingStage) note(what string, objects []runtime.Object) error {
	for _, o := range objects {
		m := o.(metav1.Object)
		s.shown = append(s.shown, fmt.Sprintf("%s %s %s", time.Since(s.began).Round(time.Second), what, m.GetName()))
	}
	return nil
}

func (s *recordingStage) Import(objects ...runtime.Object) error { return s.note("import", objects) }
func (s *recordingStage) Drop(objects ...runtime.Object) error   { return s.note("drop", objects) }
func (s *recordingStage) Register(...apiserver.Kind) error       { return nil }

// Changes come when they came, divided by the speed; gaps are announced in their place.
func TestReplayAtASpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPastRig(t)
		directory, err := mirror.OpenDirectory(t.Context(), r.dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer directory.Close()
		for _, test := range []struct {
			speed float64
			until time.Time
			want  string
		}{
			{10, time.Now(), "0s import node-1, 0s import web-1, 0s import web-1, 0s import web-2, 6s drop web-1, 12s gap, 12s gap, 25s import web-1, 25s import web-2"},
			{0, time.Now(), "0s import node-1, 0s import web-1, 0s import web-1, 0s import web-2, 0s drop web-1, 0s gap, 0s gap, 0s import web-1, 0s import web-2"},
			{1, r.gone, "0s import node-1, 0s import web-1, 1s import web-1, 1s import web-2, 1m1s drop web-1"},
		} {
			stage := &recordingStage{began: time.Now()}
			p := &player{
				directory: directory, resources: directory.Catalog().All(), stage: stage, since: r.began, until: test.until, speed: test.speed,
				onGap: func(mirror.Resource, changelog.Gap) {
					stage.shown = append(stage.shown, fmt.Sprintf("%s gap", time.Since(stage.began).Round(time.Second)))
				},
			}
			for _, do := range []func(context.Context) error{p.find, p.begin, p.play} {
				if err := do(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(stage.shown, ", "); strings.ReplaceAll(got, "24s", "25s") != test.want {
				t.Errorf("at speed %v:\n%s, want\n%s", test.speed, got, test.want)
			}
		}
	})
}

// A client of the server sees the state of then, and every change since.
func TestReplay(t *testing.T) {
	var past *pastRig
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		past = newPastRig(t)
		if err := os.CopyFS(filepath.Join(folder, "replica"), os.DirFS(past.dir)); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Chmod(filepath.Join(folder, "replica"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "past.kubeconfig")
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	out, errOut := &alarm{text: "This was the past: "}, &lockedBuffer{}
	var seen []string
	out.ring = func() {
		defer interrupt()
		seen = eventsOf(t, file)
	}
	a := newRig(t).app(nil, errOut)
	a.out = out
	code := a.main(ctx, []string{"replay", "--from", filepath.Join(folder, "replica"), "--since", at(past.began), "--speed", "0", "--kubeconfig-out", file})
	got := result{code, out.String(), errOut.String()}
	if want := "ADDED web-1 Running, MODIFIED web-1 Failed, ADDED web-2 Pending, DELETED web-1 Failed, ADDED web-1 Pending, MODIFIED web-2 Running"; strings.Join(seen, ", ") != want {
		t.Errorf("the client sees %s, want %s\n%s", strings.Join(seen, ", "), want, got)
	}
	for _, want := range []string{"The past of 2 resources, from 2000-01-01 00:00:59 UTC to ", "as fast as possible. 2 objects lived then.", "export KUBECONFIG=" + file, "This was the past: 5 changes. The server stays as it is now; Ctrl-C ends it.\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if code != exitOK || !strings.Contains(steady(got.err), "pods: states between 2000-01-01 00:03:00 and 2000-01-01 00:05:0x may be missing: read anew\n") {
		t.Errorf("it says\n%s", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the kubeconfig is left behind")
	}
}

// eventsOf is what a client of a kubeconfig sees of all that happened to pods.
func eventsOf(t *testing.T, kubeconfig string) (seen []string) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Error(err)
		return nil
	}
	client := kubernetes.NewForConfigOrDie(cfg)
	events, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer events.Stop()
	for len(seen) < 6 {
		e := <-events.ResultChan()
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Errorf("the watch gives %+v", e)
			return seen
		}
		seen = append(seen, fmt.Sprintf("%s %s %s", e.Type, p.Name, p.Status.Phase))
	}
	return seen
}
