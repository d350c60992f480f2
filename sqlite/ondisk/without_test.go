package ondisk

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/sqlite"
)

// What is left out is in the copy neither before a restart nor after, and what is
// asked for is in both.
func TestCopyIsTheSameAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		opts                   []Option
		applied, own, tolerant bool
	}{
		"as it is":     {nil, false, true, true},
		"with applied": {[]Option{WithLastApplied()}, true, true, true},
		"another list": {[]Option{AppliedCopies("example.com/*")}, true, false, true},
		"without":      {[]Option{Without("spec.tolerations")}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{})
				defer server.Close()
				p := pod("a1", "node-1")
				p.Annotations = map[string]string{LastApplied: "x", "kapp.k14s.io/original": "x", "example.com/own": "x", "kept": "yes"}
				p.Spec.Tolerations = []corev1.Toleration{{Key: "x"}}
				must(t, server.Put(p))
				dir := directory(t)
				for _, process := range []string{"first", "second"} {
					db, err := sqlite.Open(dir, sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
					must(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), In[*corev1.Pod](db, c.opts...))
					must(t, err)
					must(t, pods.WaitSynced(ctx))
					held, ok := pods.Get("default/a1")
					if !ok {
						t.Fatalf("in its %s life the copy has no pod", process)
					}
					_, applied := held.Annotations[LastApplied]
					_, kapp := held.Annotations["kapp.k14s.io/original"]
					_, own := held.Annotations["example.com/own"]
					if applied != c.applied || kapp != c.applied || own != c.own || held.Annotations["kept"] != "yes" || (len(held.Spec.Tolerations) > 0) != c.tolerant {
						t.Errorf("in its %s life the copy has %v and %v", process, held.Annotations, held.Spec.Tolerations)
					}
					if lists := pods.Health().Lists; process == "second" && len(lists) > 0 {
						t.Errorf("it listed: %v", lists)
					}
					cancel()
					<-pods.Done()
					must(t, db.Close())
				}
			})
		})
	}
}
