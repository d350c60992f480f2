package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cmd/internal/measure"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// benchRig is a server on a port, which the processes that measure find by the
// flags that they inherit.
func benchRig(t *testing.T) (run func(args ...string) result) {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := server.Register(apiserver.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}); err != nil {
		t.Fatal(err)
	}
	if err := server.Put(pod("web-1", corev1.PodRunning), pod("web-2", corev1.PodRunning), widget("w")); err != nil {
		t.Fatal(err)
	}
	config, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config")
	write(t, file, string(config))
	t.Setenv(asProgram, "1")
	return func(args ...string) result {
		var out, errOut lockedBuffer
		a := &app{
			program: "tarn", in: strings.NewReader(""), out: &out, errOut: &errOut, getenv: os.LookupEnv,
			terminal: func() (term.Terminal, bool) { return nil, false }, execute: executeSelf,
		}
		code := a.main(t.Context(), append(args, "--kubeconfig", file))
		return result{code, out.String(), errOut.String()}
	}
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": name},
	}}
}

func TestBench(t *testing.T) {
	run := benchRig(t)
	got := run("bench", "pods,widgets", "--rounds", "1", "-o", "json")
	if got.code != 0 {
		t.Fatal(got)
	}
	var verdicts []verdict
	if err := json.Unmarshal([]byte(got.out), &verdicts); err != nil {
		t.Fatal(err, got)
	}
	if len(verdicts) != 2 || verdicts[0].Resource != "pods" || verdicts[1].Resource != "widgets.example.com" {
		t.Fatalf("the verdicts are %+v", verdicts)
	}
	for i, objects := range []int{2, 1} {
		for _, r := range []measure.Result{verdicts[i].ClientGo, verdicts[i].Tarn} {
			if r.Objects != objects || r.Typed != (i == 0) || r.Sync <= 0 || r.CPU <= 0 || r.Heap == 0 || r.HeapObjects == 0 {
				t.Errorf("%s: a figure is missing, or it is of another copy: %+v", verdicts[i].Resource, r)
			}
		}
	}
	if want := "round 1 of 1: pods with client-go\nround 1 of 1: pods with tarn\n"; !strings.HasPrefix(got.err, want) {
		t.Errorf("on the way it says %q, want %q first", got.err, want)
	}
	got = run("bench", "pods", "--rounds", "1", "--timeout", "1ns")
	if got.code != 1 || !strings.HasSuffix(got.err, "tarn: pods with client-go: it took longer than 1ns; allow more with --timeout\n") {
		t.Errorf("without time it says\n%s", got)
	}
	got = run("bench", "pods", "--rounds", "1", "--field-selector", "spec.nope=x")
	if got.code != 1 || !strings.Contains(got.err, "spec.nope") || strings.Contains(got.err, "tarn: tarn:") {
		t.Errorf("what went wrong in the other process is told as\n%s", got)
	}
}

func TestBenchTable(t *testing.T) {
	var b strings.Builder
	err := printVerdicts(&b, []verdict{
		{"pods", measure.Result{Objects: 6752, Heap: 161 << 20, HeapObjects: 1_560_000, Peak: 217 << 20, Sync: 1240e6, CPU: 999e6},
			measure.Result{Objects: 6752, Heap: 38 << 20, HeapObjects: 121_000, Peak: 53 << 20, Sync: 301e6, CPU: 243e6}},
		{"widgets.example.com", measure.Result{Heap: 1000}, measure.Result{Heap: 3000}},
	}, 3)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "bench", b.String())
}

// Flags reach the other process, and secrets among them not by its command line.
func TestInherited(t *testing.T) {
	root := newRig(t).app(nil, nil).rootCommand()
	bench, _, err := root.Find([]string{"bench"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.ParseFlags([]string{"--token=s3cret", "--as=me", "--as-group=a", "--as-group=b,c", "-A", "-n", "shop"}); err != nil {
		t.Fatal(err)
	}
	args, environment := inherited(bench)
	if got, want := strings.Join(args, " "), "--as-group=a --as-group=b,c"; got != want {
		t.Errorf("the arguments are %q, want %q", got, want)
	}
	if got, want := strings.Join(environment, " "), "TARN_AS=me TARN_NAMESPACE=shop TARN_TOKEN=s3cret"; got != want {
		t.Errorf("the environment is %q, want %q", got, want)
	}
}

// A server that fails for a while costs a measurement, not the whole comparison.
func TestBenchOutlivesAPassingFailure(t *testing.T) {
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := server.Put(pod("web-1", corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	var left atomic.Int32
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") && left.Add(-1) >= 0 {
			http.Error(w, "the server is being replaced", http.StatusBadGateway)
			return
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(behind.Close)
	t.Setenv(asProgram, "1")
	run := func(failures int32) result {
		left.Store(failures)
		var out, errOut lockedBuffer
		a := &app{
			program: "tarn", in: strings.NewReader(""), out: &out, errOut: &errOut, getenv: os.LookupEnv,
			terminal: func() (term.Terminal, bool) { return nil, false }, execute: executeSelf,
		}
		code := a.main(t.Context(), []string{"bench", "pods", "--rounds", "1", "--server", behind.URL})
		return result{code, out.String(), errOut.String()}
	}
	got := run(2) // the stream and the list after it
	if got.code != 0 || !strings.Contains(got.out, "median of 1 round") || !strings.Contains(got.err, "that failed: ") || !strings.Contains(got.err, "trying again in 1s") {
		t.Errorf("after a failure that passed it says\n%s", got)
	}
}

// What fails again and again, or for good, ends it.
func TestBenchGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			err   error
			tries int
			want  string
		}{
			{passing{errors.New("bad gateway")}, benchTries, "failed 5 times in a row"},
			{errors.New("forbidden"), 1, "forbidden"},
		} {
			var errOut lockedBuffer
			a, tries := &app{errOut: &errOut}, 0
			_, err := a.persist(t.Context(), func() (measure.Result, error) { tries++; return measure.Result{}, test.err })
			if tries != test.tries || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: %d tries, %v", test.err, tries, err)
			}
		}
	})
}
