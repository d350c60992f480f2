package cli

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

func TestEnvironmentSetsFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := pod("web-9", corev1.PodRunning)
		other.Namespace = "shop"
		r := newRig(t, pod("web-1", corev1.PodRunning), other)
		r.env = map[string]string{"TARN_NAMESPACE": "shop", "TARN_OUTPUT": "name", "TARN_HELP": "true", "TARN_NO_SUCH": "x"}
		if got := r.run("get", "pods"); got.String() != "pod/web-9\n" {
			t.Errorf("the environment is not heeded:\n%s", got)
		}
		if got := r.run("get", "pods", "-n", "default", "-o", "jsonpath={.items[*].metadata.name}"); got.String() != "web-1" {
			t.Errorf("the command line does not win:\n%s", got)
		}
		r.env = map[string]string{"TARN_NO_HEADERS": "perhaps"}
		if err := r.run("get", "pods").check(2, "TARN_NO_HEADERS", "--no-headers", `"perhaps"`); err != nil {
			t.Error(err)
		}
	})
}

// What client-go logs goes the way of the program's own logs.
func TestLogs(t *testing.T) {
	defer klog.ClearLogger()
	for _, test := range []struct{ format, want string }{
		{"text", `level=INFO msg=hello`}, {"json", `"level":"INFO","msg":"hello"`},
	} {
		var out, errOut lockedBuffer
		r := newRig(t)
		a := r.app(&out, &errOut)
		a.klog = klog.SetSlogLogger
		if code := a.main(context.Background(), []string{"version", "--log-level=info", "--log-format=" + test.format}); code != 0 {
			t.Fatal(errOut.String())
		}
		klog.Info("hello")
		klog.V(3).Info("whispered")
		a.logger.Debug("whispered too")
		if got := errOut.String(); !strings.Contains(got, test.want) || strings.Contains(got, "whispered") {
			t.Errorf("in %s it logs %q, want %q", test.format, got, test.want)
		}
	}
}

// A log line must not appear in the middle of a view.
func TestLogsGoAboveTheView(t *testing.T) {
	var plain, above lockedBuffer
	var sink logSink
	sink.redirect(&plain)
	logger := slog.New(slog.NewTextHandler(&sink, nil))
	logger.Info("one")
	before := sink.redirect(&above)
	logger.Info("two")
	sink.redirect(before)
	logger.Info("three")
	if got := plain.String(); strings.Contains(got, "two") || !strings.Contains(got, "one") || !strings.Contains(got, "three") {
		t.Errorf("beside the view: %q", got)
	}
	if got := above.String(); !strings.Contains(got, "two") {
		t.Errorf("above the view: %q", got)
	}
}
