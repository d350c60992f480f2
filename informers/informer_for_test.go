package informers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/cache"
)

// TestInformerFor keeps the informer that the first caller for a type builds,
// also when the typed packages ask afterwards.
func TestInformerFor(t *testing.T) {
	story{
		choices: choices{resync: time.Minute, resyncOf: map[metav1.Object]time.Duration{&corev1.Node{}: time.Hour}},
		objects: small,
		script: func(w *storyRunner) {
			build := func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				w.record("built with %v, client is the factory's: %t", resync, client == kubernetes.Interface(w.client))
				return coreinformers.NewFilteredPodInformer(client, "south", resync, nil, nil)
			}
			custom := w.factory.InformerFor(&corev1.Pod{}, build)
			w.record("the same again: %t", custom == w.factory.InformerFor(&corev1.Pod{}, build))
			w.factory.InformerFor(&corev1.Node{}, build)
			w.nextSection("accessor")
			w.follow(w.factory.Core().V1().Pods().Informer())
			w.factory.StartWithContext(w.ctx)
			w.nextSection("indexers")
			w.record("pods: %d", len(custom.GetIndexer().GetIndexers()))
			w.record("services: %d", len(w.factory.Core().V1().Services().Informer().GetIndexer().GetIndexers()))
		},
		want: `
			built with 1h0m0s, client is the factory's: true
			built with 1m0s, client is the factory's: true
			the same again: true
			-- accessor --
			add south/b@1 (initial)
			-- indexers --
			pods: 0
			services: 1`,
	}.run(t)
}

// TestRunOnce does not count on informers to refuse a second run.
func TestRunOnce(t *testing.T) {
	for name, make := range factories {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			f := make(nil, choices{}, nil)
			f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
				return counted{runs: &runs}
			})
			for range 3 {
				f.StartWithContext(t.Context())
			}
			f.Shutdown()
			if got := runs.Load(); got != 1 {
				t.Errorf("the informer was run %d times", got)
			}
		})
	}
}

// counted is an informer that counts its runs.
type counted struct {
	cache.SharedIndexInformer
	runs *atomic.Int32
}

func (c counted) RunWithContext(context.Context) { c.runs.Add(1) }

// TestTransformTooLate says so when an informer cannot take the transform.
func TestTransformTooLate(t *testing.T) {
	var told []string
	catchErrors(t, func(err error) { told = append(told, err.Error()) })
	identity := func(o any) (any, error) { return o, nil }
	f := NewSharedInformerFactoryWithOptions(nil, 0, WithTransform(identity))
	f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return running{}
	})
	want := []string{"informer for *v1.Pod: its objects will not be transformed: already started; give InformerFor an informer that is not running yet"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// running is an informer that was started by other code.
type running struct{ cache.SharedIndexInformer }

func (running) SetTransform(cache.TransformFunc) error { return errors.New("already started") }
