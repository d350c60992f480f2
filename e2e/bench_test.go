package e2e

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var (
	raceOf     = flag.Int("bench.pods", 100, "how many pods the benchmark on the real server has")
	raceRounds = flag.Int("bench.rounds", 1, "how many rounds it has")
)

// TestBenchmark holds the race "production" of the benchmarks on the real server, as it
// serves by itself: TLS, HTTP/2 and compressed lists. With few pods it proves that the
// race can be held; `make bench-server` holds it with many, for the figures.
func TestBenchmark(t *testing.T) {
	if testing.Short() {
		t.Skip("the real server is left out with -short")
	}
	cluster := Start(t, Options{})
	output := runBenchmark(t, ".", "-kubeconfig", cluster.kubeconfig, "-n", strconv.Itoa(*raceOf), "-count", strconv.Itoa(*raceRounds))
	for _, contender := range []string{"client-go", "controller-runtime", "tarn informers", "tarn kube", "tarn ctrlcache"} {
		if !strings.Contains(output, contender) {
			t.Errorf("there are no figures of %s", contender)
		}
	}
}

// runBenchmark runs a program of module bench, and returns what it printed.
func runBenchmark(t *testing.T, pkg string, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "bench")
	build := exec.Command("go", "build", "-o", program, pkg)
	build.Dir = filepath.Join("..", "bench")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	run := exec.CommandContext(t.Context(), program, args...)
	run.Dir = build.Dir
	output, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", run, err, output)
	}
	t.Logf("%s", output)
	return string(output)
}
