package cache

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tarnproject/tarn/internal/guard"
	"github.com/tarnproject/tarn/kube/wire"
)

// In guard mode a test may send what it read from one cache to another one. The pool cannot
// hold that: Go makes no weak pointer to frozen memory, and ends the process instead.
func TestFrozenObjectsInAnotherCache(t *testing.T) {
	if !guard.Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	listing(t)
	t.Setenv(guard.Variable, "1")
	pods := func(items ...corev1.Pod) *ListWatch {
		return &ListWatch{
			ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: items}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
	}
	template := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "template"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1", Args: []string{"-v", "-x"}}}},
	}
	collect := func() {
		for range 3 {
			runtime.GC()
			wire.Shared().Collect()
		}
	}
	for name, informer := range map[string]func(*ListWatch) (Store, func() bool, func() func()){
		"shared": func(lw *ListWatch) (Store, func() bool, func() func()) {
			i := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
			return i.GetStore(), i.HasSynced, func() func() { stop := running(i.RunWithContext); return func() { stop() } }
		},
		"with one handler": func(lw *ListWatch) (Store, func() bool, func() func()) {
			store, c := NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Pod{}})
			return store, c.HasSynced, func() func() { stop := running(c.RunWithContext); return func() { stop() } }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, _, run := informer(pods(template))
				defer run()()
				synctest.Wait()
				collect() // what only one object has is dropped from the pool
				var copies []corev1.Pod
				for i := range 10 {
					pod := *first.List()[0].(*corev1.Pod)
					pod.Name = fmt.Sprint("web-", i)
					copies = append(copies, pod)
				}
				second, synced, run := informer(pods(copies...))
				defer run()()
				synctest.Wait()
				collect()
				if got := second.List(); !synced() || len(got) != 10 || got[0].(*corev1.Pod).Spec.Containers[0].Args[1] != "-x" {
					t.Errorf("the second cache has %v", got)
				}
			})
		})
	}
}
