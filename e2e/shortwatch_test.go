package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/tarnproject/tarn"
)

// A watch of three seconds of a quiet collection gets a bookmark in that time, at a
// version that is not older than that of a probe before. So a copy from disk is
// synced soon after a restart, and does not wait for the bookmark of a minute.
func TestShortWatchOfAQuietCollection(t *testing.T) { onEach(t, 5, shortWatch) }

func shortWatch(s *testEnv) {
	t := s.T
	admin := s.server.Admin()
	before, err := admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "noise-"}}
		if _, err := admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	probe, err := admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w, err := admin.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: before.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(3)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type != watch.Bookmark {
			continue
		}
		v := tarn.Version(e.Object.(*corev1.Pod).ResourceVersion)
		t.Logf("on disk %s, the probe saw %s, after %s a bookmark at %s", before.ResourceVersion, probe.ResourceVersion, time.Since(began).Round(time.Millisecond), v)
		if v.OlderThan(tarn.Version(probe.ResourceVersion)) {
			t.Errorf("the bookmark at %s is older than what the probe saw, %s", v, probe.ResourceVersion)
		}
		return
	}
	t.Errorf("the watch was over after %s without a bookmark", time.Since(began))
}
