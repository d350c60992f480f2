package cli

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pastRig is a rig with a directory that keeps the history of a short story: web-1 fails
// and is deleted, web-2 starts, web-1 comes again; before that, a restart could not be
// resumed, which is a gap.
type pastRig struct {
	*rig
	dir string
	// began is when all was there, failed when web-1 had failed, gone when it was deleted;
	// gap is within the gap, and again after all.
	began, failed, gone, gap, again time.Time
}

func newPastRig(t *testing.T) *pastRig {
	t.Helper()
	r := &pastRig{rig: newRig(t, node("node-1"), pod("web-1", corev1.PodRunning)), dir: filepath.Join(t.TempDir(), "replica")}
	keep := func(do func()) {
		t.Helper()
		got := r.during(func(*lockedBuffer) { do() }, "mirror", "pods", "nodes", "--to", r.dir, "--history", "24h,1GB")
		if got.code != 0 || !strings.Contains(got.out, "synced") {
			t.Fatalf("the mirror says\n%s", got)
		}
	}
	step := func() time.Time {
		time.Sleep(59 * time.Second)
		defer time.Sleep(time.Second)
		return time.Now()
	}
	keep(func() {
		r.began = step()
		r.put(pod("web-1", corev1.PodFailed), pod("web-2", corev1.PodPending))
		r.failed = step()
		r.delete(pod("web-1", ""))
		r.gone = step()
	})
	r.gap = step()
	r.put(pod("web-2", corev1.PodRunning))
	time.Sleep(time.Second)
	r.server.Compact()
	r.put(pod("web-1", corev1.PodPending))
	r.server.Compact()
	step()
	keep(func() { r.again = step() })
	r.intercept = func(*http.Request, http.RoundTripper) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	return r
}

// ask runs a command line on the directory.
func (r *pastRig) ask(args ...string) result {
	return r.run(append(args, "--from", r.dir)...)
}

// steady has a text without what is drawn: uids, and when the copy came back.
func steady(text string) string {
	text = regexp.MustCompile(`00:05:0\d(\.\d+)?`).ReplaceAllString(text, "00:05:0x")
	return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "UID")
}

func at(t time.Time) string { return t.Format(time.RFC3339Nano) }
