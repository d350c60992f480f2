package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/internal/testsize"
)

// unindexable runs an informer of n objects with an index function that fails for all of
// them. Events that are sent to the returned channel reach the informer.
func unindexable(tb testing.TB, n int) (*informer, chan watch.Event) {
	events := make(chan watch.Event, 1000)
	lw := &ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for i := range n {
				list.Items = append(list.Items, *numbered(i, 1))
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(events), nil
		},
	}
	fails := func(any) ([]string, error) { return nil, errors.New("no such field") }
	s := NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, Indexers{"field": fails}).(*informer)
	stop := running(s.RunWithContext)
	tb.Cleanup(func() { stop() })
	if err := s.replica.WaitSynced(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s, events
}

func numbered(i, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("c%06d", i), ResourceVersion: strconv.Itoa(version)}}
}

// A client may poll LastSyncResourceVersion and IsStopped, however many objects are bad.
func TestStatusOfManyBadObjects(t *testing.T) {
	listing(t)
	objects := testsize.Of(10_000, 1_000)
	s, _ := unindexable(t, objects)
	if bad := s.replica.Health().BadCount; bad != objects {
		t.Fatalf("%d objects are bad", bad)
	}
	if n := testing.AllocsPerRun(10, func() {
		_ = s.LastSyncResourceVersion()
		_ = s.IsStopped()
	}); n > 0 {
		t.Errorf("asking for version and state makes %v allocations", n)
	}
}

func BenchmarkFailingIndex(b *testing.B) {
	for _, poll := range []bool{false, true} {
		b.Run(fmt.Sprintf("polled=%v", poll), func(b *testing.B) {
			const n = 200_000
			listing(b)
			s, events := unindexable(b, n)
			if poll {
				stop := running(func(ctx context.Context) {
					tick := time.NewTicker(10 * time.Millisecond)
					defer tick.Stop()
					for ctx.Err() == nil {
						_ = s.LastSyncResourceVersion()
						<-tick.C
					}
				})
				b.Cleanup(func() { stop() })
			}
			version := 1
			for b.Loop() {
				version++
				events <- watch.Event{Type: watch.Modified, Object: numbered(version*7919%n, version)}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
