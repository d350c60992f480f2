package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Several clusters are fed under their names. One that is unreachable holds nobody up, and is fed
// when it answers; one whose kubeconfig goes is no longer fed, and its rows stay.
func TestFeedFleet(t *testing.T) {
	f := newFed(t)
	dir := t.TempDir()
	east := startCluster(t, "web-1")
	away := startCluster(t, "web-1")
	leadTo(t, filepath.Join(dir, "east.yaml"), east)
	leadTo(t, filepath.Join(dir, "away.yaml"), away)
	away.Close()
	r := newRig(t)
	feed := r.feed("pods", "-A", "--to", f.address, "--kubeconfig-dir", dir, "--interval", "100ms", "--metrics", "127.0.0.1:0")
	f.await("SELECT cluster, key FROM pods ORDER BY 1, 2", "east default/web-1")
	feed.says("away: ")
	feed.says("it is tried again")

	west := startCluster(t, "web-1", "web-2")
	leadTo(t, filepath.Join(dir, "west.yaml"), west)
	f.await("SELECT cluster, key FROM pods ORDER BY 1, 2", "east default/web-1\nwest default/web-1\nwest default/web-2")
	feed.says("west: ")
	metrics := regexp.MustCompile(`Metrics at (\S+)`).FindStringSubmatch(feed.out.String())
	awaitMetric(t, metrics[1], `tarn_objects{cluster="west",replica="pods"} 2`)
	// One cluster that is fed is enough to be ready.
	awaitAnswer(t, strings.TrimSuffix(metrics[1], "/metrics")+"/readyz", http.StatusOK, "ok")

	if err := os.Remove(filepath.Join(dir, "east.yaml")); err != nil {
		t.Fatal(err)
	}
	f.await("SELECT cluster FROM tarn_feeds WHERE lease_until <= now() OR owner = ''", "east")
	f.await("SELECT count(*) FROM pods WHERE cluster = 'east'", "1")
	feed.stop()
	for args, want := range map[string]string{
		"feed pods -A --to postgres://h/d --contexts a,b --cluster-name c": "--cluster-name names one cluster",
		"feed pods --to postgres://h/d --contexts a,b":                     "say -A or -n NAMESPACE",
	} {
		if err := r.run(strings.Fields(args)...).check(exitUsage, want); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// awaitMetric waits until a page of metrics has a line.
func awaitMetric(t *testing.T, address, line string) {
	t.Helper()
	awaitAnswer(t, address, http.StatusOK, line+"\n")
}

// awaitAnswer waits until an address answers with a code and a text.
func awaitAnswer(t *testing.T, address string, want int, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		code, body := fetch(t, address, "")
		if code == want && strings.Contains(body, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: no %d with %s in\n%d %s", address, want, text, code, body)
		}
	}
}
