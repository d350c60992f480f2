package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func kubeconfig(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here}}]
clusters: [{name: here, cluster: {server: %q}}]
`, server)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func show(c Change) string {
	var words []string
	for _, name := range c.Removed {
		words = append(words, "-"+name)
	}
	for _, a := range c.Added {
		words = append(words, "+"+a.Name+"@"+a.Config.Host)
	}
	return strings.Join(words, " ")
}

func TestDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "east.yaml", kubeconfig("http://east"))
		write(t, dir, "west.kubeconfig", kubeconfig("http://west"))
		write(t, dir, ".hidden", "no kubeconfig")
		if err := os.Mkdir(filepath.Join(dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := InDirectory(dir, func(cfg *rest.Config) { cfg.UserAgent = "test" }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := show(Change{Added: f.Clusters()}); got != "+east@http://east +west@http://west" || f.Clusters()[0].Config.UserAgent != "test" {
			t.Errorf("there are %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var changes []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for c := range f.Changes(ctx) {
				mu.Lock()
				changes = append(changes, show(c))
				mu.Unlock()
			}
		}()
		step := func(want string) {
			t.Helper()
			time.Sleep(3 * lookEvery)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(changes, "; "); got != want {
				t.Errorf("changed %q, want %q", got, want)
			}
			changes = nil
		}
		step("")
		write(t, dir, "north.yaml", kubeconfig("http://north"))
		step("+north@http://north")
		write(t, dir, "east.yaml", "half: [written")
		step("")
		write(t, dir, "east.yaml", kubeconfig("http://moved"))
		step("-east +east@http://moved")
		if err := os.Remove(filepath.Join(dir, "west.kubeconfig")); err != nil {
			t.Fatal(err)
		}
		step("-west")
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		step("")
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		step("")
		cancel()
		<-ended
	})
}

// A kubeconfig that is bad, good and bad again in the same way is told twice, and its cluster
// stays as it was.
func TestBadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "east.yaml", kubeconfig("http://east"))
		var log strings.Builder
		f, err := InDirectory(dir, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for c := range f.Changes(ctx) {
				t.Errorf("changed %s", show(c))
			}
		}()
		time.Sleep(lookEvery / 2) // not while it is read
		for range 2 {
			for _, text := range []string{"half: [written", kubeconfig("http://east")} {
				write(t, dir, "east.yaml", text)
				time.Sleep(3 * lookEvery)
			}
		}
		cancel()
		<-ended
		if n := strings.Count(log.String(), "cannot be used"); n != 2 {
			t.Errorf("told %d times:\n%s", n, log.String())
		}
	})
}

func TestWrongFleets(t *testing.T) {
	bad := t.TempDir()
	write(t, bad, "east.yaml", "no kubeconfig")
	for want, make := range map[string]func() (*Fleet, error){
		"no kubeconfig in":        func() (*Fleet, error) { return InDirectory(t.TempDir(), nil, nil) },
		"no such file":            func() (*Fleet, error) { return InDirectory(filepath.Join(bad, "none"), nil, nil) },
		"east.yaml is of no use":  func() (*Fleet, error) { return InDirectory(bad, nil, nil) },
		"there are no clusters":   func() (*Fleet, error) { return Of() },
		"two clusters are called": func() (*Fleet, error) { return Of(Cluster{Name: "a"}, Cluster{Name: "a"}) },
		"cannot be the name":      func() (*Fleet, error) { return Of(Cluster{Name: "a/b"}) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestNameOf(t *testing.T) {
	if got := NameOf("arn:aws:eks:eu:1:cluster/prod"); got != "arn:aws:eks:eu:1:cluster:prod" {
		t.Error(got)
	}
}
