package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tarnproject/tarn/apiserver"
)

// startCluster starts a server with some pods.
func startCluster(t *testing.T, pods ...string) *apiserver.Server {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, name := range pods {
		if err := server.Put(pod(name, corev1.PodRunning)); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

// leadTo writes a kubeconfig for a server.
func leadTo(t *testing.T, path string, server *apiserver.Server) {
	t.Helper()
	text, err := server.Kubeconfig()
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within 30 s: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Clusters die, come and go under a page that is kept on disk; the directory has each by
// its name.
func TestServeFleet(t *testing.T) {
	east, west, north := startCluster(t, "web-1", "web-2"), startCluster(t, "web-1"), startCluster(t, "web-1", "db-1")
	configs := t.TempDir()
	leadTo(t, filepath.Join(configs, "east.yaml"), east)
	leadTo(t, filepath.Join(configs, "west.yaml"), west)
	to := filepath.Join(t.TempDir(), "replica")
	var errOut lockedBuffer
	r := newRig(t)
	app := r.app(nil, &errOut)
	app.connect = nil
	ended := commandUntil(t.Context(), app, regexp.MustCompile(` at (https?://\S+/)$`), func(address string) {
		clusters := func() (names []string, dead int) {
			_, body := fetch(t, address+"api/tables/pods?limit=100", "")
			var answer struct {
				Rows []struct {
					Key   string
					Cells []string
				}
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			for _, row := range answer.Rows {
				names = append(names, row.Key)
				if cluster, _, _ := strings.Cut(row.Key, "/"); row.Cells[0] != cluster {
					t.Errorf("the first cell of %s is %q", row.Key, row.Cells[0])
				}
			}
			_, body = fetch(t, address+"api/tables", "")
			return names, strings.Count(body, `"error"`)
		}
		has := func(want ...string) func() bool {
			return func() bool { names, _ := clusters(); return slices.Equal(names, want) }
		}
		eventually(t, "both clusters", has("east/default/web-1", "east/default/web-2", "west/default/web-1"))
		west.Close()
		leadTo(t, filepath.Join(configs, "north.yaml"), north)
		eventually(t, "a third one", has("east/default/web-1", "east/default/web-2", "north/default/db-1", "north/default/web-1", "west/default/web-1"))
		eventually(t, "the dead one is told", func() bool { _, dead := clusters(); return dead > 0 })
		if status, body := fetch(t, address+"readyz", ""); status != 200 {
			t.Errorf("%d %s: one of three is dead", status, body)
		}
		if err := os.Remove(filepath.Join(configs, "east.yaml")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the first is gone", has("north/default/db-1", "north/default/web-1", "west/default/web-1"))
	}, "serve", "pods", "-A", "--kubeconfig-dir", configs, "--to", to, "--listen=127.0.0.1:0", "--no-page-token")
	if ended.code != 0 || !strings.HasPrefix(ended.out, "Serving 1 resource of 2 clusters at ") {
		t.Errorf("ended with\n%s%s", ended, errOut.String())
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "pods", "-A", "--from", to}, "NAMESPACE NAME CLUSTER"},
		{[]string{"get", "pods", "-A", "--from", to}, "default db-1 north"},
		{[]string{"get", "pods", "web-1", "-n", "default", "--from", to}, "web-1 west"},
		{[]string{"query", "pods", "--where", "metadata.name=web-1", "-n", "default", "--from", to}, "web-1 north"},
		{[]string{"sql", "--from", to, "SELECT cluster, count(*) FROM pods GROUP BY cluster ORDER BY 1"}, "north 2\nwest 1"},
	} {
		got := r.run(c.args...)
		if text := squeezed(got.out); got.code != 0 || !strings.Contains(text, c.want) {
			t.Errorf("%q: code %d\n%s%s\nwant %q in it", c.args, got.code, got.out, got.err, c.want)
		}
	}
	if got := r.run("get", "pods", "-A", "--from", to, "--context", "west"); strings.Contains(got.out, "north") || !strings.Contains(got.out, "web-1") {
		t.Errorf("narrowed to one cluster: %s", got.out)
	}
	if got := r.run("get", "pods", "-A", "--from", to, "--context", "wets"); got.code != 1 || !strings.Contains(got.err, `has no cluster "wets"; it has north, west`) {
		t.Errorf("code %d: %s", got.code, got.err)
	}
	if got := r.run("replay", "--from", to, "--since", "1h"); got.code != 2 || !strings.Contains(got.err, "several clusters") {
		t.Errorf("replay: code %d: %s", got.code, got.err)
	}
}

// squeezed is a text with single spaces.
func squeezed(text string) string {
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}

// Contexts are clusters by their names, or by others.
func TestMirrorContexts(t *testing.T) {
	east, west := startCluster(t, "web-1"), startCluster(t, "web-1")
	file := filepath.Join(t.TempDir(), "config")
	leadTo(t, file, east)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]*apiserver.Server{"east": east, "cloud/west": west} {
		text, err := server.Kubeconfig()
		if err != nil {
			t.Fatal(err)
		}
		one, err := clientcmd.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		config.Clusters[name] = one.Clusters["tarn"]
		config.Contexts[name] = one.Contexts[one.CurrentContext]
		config.Contexts[name].Cluster = name
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) result {
		var out, errOut lockedBuffer
		app := newRig(t).app(&out, &errOut)
		app.connect = nil
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan int, 1)
		go func() { ended <- app.main(ctx, append([]string{"mirror", "pods", "--kubeconfig", file}, args...)) }()
		for {
			select {
			case code := <-ended:
				return result{code, out.String(), errOut.String()}
			case <-time.After(20 * time.Millisecond):
				if strings.Contains(out.String(), "synced 2 objects") {
					cancel()
				}
			}
		}
	}
	for _, contexts := range []string{"east,cloud/west", "a=east,b=cloud/west"} {
		if got := run("-A", "--contexts", contexts); got.code != 0 || !strings.Contains(got.out, "pods: synced, 2 objects") {
			t.Errorf("%s: %s", contexts, got)
		}
	}
	for says, args := range map[string][]string{
		"say -A or -n NAMESPACE":                         {"--contexts", "east"},
		`there is no context "wets"`:                     {"-A", "--contexts", "east,wets"},
		`two clusters are called "x"`:                    {"-A", "--contexts", "x=east,x=cloud/west"},
		"--verify compares with one cluster":             {"-A", "--contexts", "east", "--verify", "1m"},
		"--contexts and --kubeconfig-dir do not go":      {"-A", "--contexts", "east", "--kubeconfig-dir", "."},
		"--context names one cluster, and --contexts or": {"-A", "--contexts", "east", "--context", "east"},
	} {
		if got := run(args...); got.code == 0 || !strings.Contains(got.err, says) {
			t.Errorf("%q: want %q, got %s", args, says, got)
		}
	}
}

// A relay of several clusters serves each at its path, and starts although one is dead.
func TestRelayFleet(t *testing.T) {
	east, west, dead := startCluster(t, "web-1", "web-2"), startCluster(t, "web-1"), startCluster(t)
	configs, dir := t.TempDir(), filepath.Join(t.TempDir(), "past")
	leadTo(t, filepath.Join(configs, "east.yaml"), east)
	leadTo(t, filepath.Join(configs, "dead.yaml"), dead)
	dead.Close()
	var errOut lockedBuffer
	app := newRig(t).app(nil, &errOut)
	app.connect = nil
	ended := commandUntil(t.Context(), app, regexp.MustCompile(` at (https?://\S+/)$`), func(address string) {
		pods := func(cluster string) (int, string) {
			return fetch(t, address+"clusters/"+cluster+"/api/v1/pods?resourceVersion=0", "a caller's token")
		}
		eventually(t, "one is ready", func() bool { status, _ := fetch(t, address+"readyz", ""); return status == 200 })
		if status, body := pods("east"); status != 200 || strings.Count(body, `"uid"`) != 2 {
			t.Errorf("%d %s", status, body)
		}
		if status, body := pods("west"); status != 404 || !strings.Contains(body, "its clusters are dead, east") {
			t.Errorf("%d %s", status, body)
		}
		leadTo(t, filepath.Join(configs, "west.yaml"), west)
		eventually(t, "one is added", func() bool { status, _ := pods("west"); return status == 200 })
		if err := os.Remove(filepath.Join(configs, "east.yaml")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "one is removed", func() bool { status, _ := pods("east"); return status == 404 })
	}, "relay", "pods", "--kubeconfig-dir", configs, "--listen=127.0.0.1:0", "--drain", "10ms", "--dir", dir)
	if ended.code != 0 || !strings.HasPrefix(ended.out, "Relaying 1 resource of 2 clusters at ") {
		t.Errorf("ended with\n%s%s", ended, errOut.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "west")); err != nil {
		t.Errorf("each cluster has a directory: %v", err)
	}
}

// The page of a relay of several clusters has them all.
func TestPageOfARelayFleet(t *testing.T) {
	east, dead := startCluster(t, "web-1"), startCluster(t)
	configs := t.TempDir()
	leadTo(t, filepath.Join(configs, "east.yaml"), east)
	leadTo(t, filepath.Join(configs, "dead.yaml"), dead)
	dead.Close()
	app := newRig(t).app(nil, &lockedBuffer{})
	app.connect = nil
	ended := commandUntil(t.Context(), app, regexp.MustCompile(`^The page: (http\S+/)`), func(page string) {
		var body string
		eventually(t, "the page has both clusters", func() bool {
			_, body = fetch(t, page+"api/tables", "")
			return strings.Contains(body, `"synced":true`)
		})
		for _, want := range []string{`"clusters":[{"name":"dead"`, `{"cluster":"dead","name":"pods"`, `{"cluster":"east","name":"pods"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is not in %s", want, body)
			}
		}
		if status, body := fetch(t, page+"readyz", ""); status != 200 {
			t.Errorf("one of two is ready: %d %s", status, body)
		}
	}, "relay", "pods", "--kubeconfig-dir", configs, "--listen=127.0.0.1:0", "--drain", "10ms", "--page", "127.0.0.1:0", "--no-page-token")
	if ended.code != 0 {
		t.Errorf("ended with\n%s", ended)
	}
}
