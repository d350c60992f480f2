package fleet

import (
	"context"
	"errors"
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

// watch follows a fleet. step waits until the directory was read, and returns what changed;
// stop ends it.
func watch(ctx context.Context, f *Fleet) (step func() string, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
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
	step = func() string {
		time.Sleep(3 * lookEvery)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(changes, "; ")
		changes = nil
		return all
	}
	return step, func() {
		cancel()
		<-ended
	}
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
		next, stop := watch(t.Context(), f)
		step := func(want string) {
			t.Helper()
			if got := next(); got != want {
				t.Errorf("changed %q, want %q", got, want)
			}
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
		stop()
	})
}

// watchEast follows a directory with the kubeconfig of one cluster, east.
func watchEast(t *testing.T) (dir string, log *strings.Builder, step func() string, stop func()) {
	dir, log = t.TempDir(), &strings.Builder{}
	write(t, dir, "east.yaml", kubeconfig("http://east"))
	f, err := InDirectory(dir, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	step, stop = watch(t.Context(), f)
	time.Sleep(lookEvery / 2) // so that no file is written while it is read
	return dir, log, step, stop
}

// A kubeconfig that is bad, good and bad again in the same way is logged twice, and its
// cluster stays unchanged.
func TestBadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log, step, stop := watchEast(t)
		for range 2 {
			for _, text := range []string{"half: [written", kubeconfig("http://east")} {
				write(t, dir, "east.yaml", text)
				if got := step(); got != "" {
					t.Errorf("changed %s", got)
				}
			}
		}
		stop()
		if n := strings.Count(log.String(), "cannot be used"); n != 2 {
			t.Errorf("told %d times:\n%s", n, log.String())
		}
	})
}

// A copy of a kubeconfig that is left beside it, with another ending, takes nothing over.
func TestTwoFilesForOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log, step, stop := watchEast(t)
		write(t, dir, "east.bak", kubeconfig("http://east"))
		step()
		write(t, dir, "east.yaml", kubeconfig("http://moved"))
		if got := step(); got != "" {
			t.Errorf("with both files, changed %q", got)
		}
		if err := os.Remove(filepath.Join(dir, "east.bak")); err != nil {
			t.Fatal(err)
		}
		if got := step(); got != "-east +east@http://moved" {
			t.Errorf("with one file, changed %q", got)
		}
		stop()
		if n := strings.Count(log.String(), "east.bak and east.yaml are both for the cluster"); n != 1 {
			t.Errorf("told %d times:\n%s", n, log.String())
		}
	})
}

// Editors and deployments remove a file and write it again, or write it in pieces that are
// kubeconfigs of their own. A state of the directory that only one look sees does not count.
func TestStatesOfAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log, step, stop := watchEast(t)
		file := filepath.Join(dir, "east.yaml")
		for name, change := range map[string]func(){
			"removed": func() {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			},
			"another": func() { write(t, dir, "east.yaml", kubeconfig("http://ea")) },
			"empty":   func() { write(t, dir, "east.yaml", "") },
			"new": func() {
				write(t, dir, "west.yaml", kubeconfig("http://we"))
				time.AfterFunc(lookEvery, func() { os.Remove(filepath.Join(dir, "west.yaml")) })
			},
		} {
			change()
			time.Sleep(lookEvery)
			write(t, dir, "east.yaml", kubeconfig("http://east"))
			if got := step(); got != "" {
				t.Errorf("%s: changed %q", name, got)
			}
		}
		stop()
		if n := strings.Count(log.String(), "the kubeconfig "+file+" is of no use: it is empty"); n != 1 {
			t.Errorf("told %d times:\n%s", n, log.String())
		}
	})
}

// A Secret that is mounted: its files are links into a directory that is replaced in one step,
// after which the links of files that are gone are removed.
func TestMountedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		mount := func(version string, servers map[string]string) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, server := range servers {
				write(t, filepath.Join(dir, version), name, kubeconfig(server))
				_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // it may be there
			}
			next := filepath.Join(dir, "..data_tmp")
			if err := errors.Join(os.Symlink(version, next), os.Rename(next, filepath.Join(dir, "..data"))); err != nil {
				t.Fatal(err)
			}
		}
		mount("..1", map[string]string{"east.yaml": "http://east", "west.yaml": "http://west"})
		f, err := InDirectory(dir, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		step, stop := watch(t.Context(), f)
		time.Sleep(lookEvery / 2)
		mount("..2", map[string]string{"east.yaml": "http://moved", "north.yaml": "http://north"})
		if got := step(); got != "-east +east@http://moved +north@http://north" {
			t.Errorf("changed %q", got) // west is a link to nothing, which may be anything
		}
		if err := errors.Join(os.Remove(filepath.Join(dir, "west.yaml")), os.RemoveAll(filepath.Join(dir, "..1"))); err != nil {
			t.Fatal(err)
		}
		if got := step(); got != "-west" {
			t.Errorf("changed %q", got)
		}
		stop()
	})
}

func TestWrongFleets(t *testing.T) {
	bad := t.TempDir()
	write(t, bad, "east.yaml", "no kubeconfig")
	pipe := t.TempDir()
	if err := os.Symlink(os.DevNull, filepath.Join(pipe, "east.yaml")); err != nil {
		t.Fatal(err)
	}
	for want, make := range map[string]func() (*Fleet, error){
		"no kubeconfig in":        func() (*Fleet, error) { return InDirectory(t.TempDir(), nil, nil) },
		"no such file":            func() (*Fleet, error) { return InDirectory(filepath.Join(bad, "none"), nil, nil) },
		"east.yaml is of no use":  func() (*Fleet, error) { return InDirectory(bad, nil, nil) },
		"it is not a file":        func() (*Fleet, error) { return InDirectory(pipe, nil, nil) },
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
