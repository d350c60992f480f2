package cache

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A server whose ListerWatcher says that it cannot stream initial events, as fake
// clientsets do, is no fake: a watch that freezes before its first bookmark is replaced.
func TestDeclaredServerThatFreezes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watches := 0
		informer := NewSharedIndexInformer(noStreams{&ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
				watches++
				frozen := &decoding{objects: make(chan runtime.Object), stop: make(chan struct{})}
				return watch.NewStreamWatcher(frozen, apierrors.NewClientErrorReporter(500, "GET", "")), nil
			},
		}}, &corev1.Pod{}, 0, Indexers{})
		stop := running(informer.RunWithContext)
		defer stop()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if watches < 2 {
			t.Errorf("%d watch in half an hour, which is frozen", watches)
		}
	})
}
