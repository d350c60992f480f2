package informers

import (
	"errors"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tarnproject/tarn/cache"
)

func newPod(namespace, name, v string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"v": v}}}
}

func newNode(name, v string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"v": v}}}
}

func small() []runtime.Object {
	return []runtime.Object{newPod("north", "a", "1"), newPod("south", "b", "1"), newNode("n", "1")}
}

// TestLife follows objects from list to delete through handlers and listers.
func TestLife(t *testing.T) {
	story{
		objects: small,
		script: func(w *storyRunner) {
			pods, nodes := w.factory.Core().V1().Pods(), w.factory.Core().V1().Nodes()
			w.follow(pods.Informer())
			w.follow(nodes.Informer())
			w.factory.StartWithContext(w.ctx)
			w.must(w.factory.WaitForCacheSyncWithContext(w.ctx).AsError())

			w.nextSection("listed")
			for _, selector := range []string{"", "v=1", "v=2"} {
				s, err := labels.Parse(selector)
				w.must(err)
				north, err := pods.Lister().Pods("north").List(s)
				w.must(err)
				all, err := pods.Lister().List(s)
				w.must(err)
				w.record("%q: %d in north, %d in all", selector, len(north), len(all))
			}
			n, err := nodes.Lister().Get("n")
			w.must(err)
			w.record("got %s", brief(n))
			_, err = pods.Lister().Pods("north").Get("b")
			w.record("%v", err)

			w.nextSection("changed")
			client := w.client.CoreV1().Pods("north")
			_, err = client.Create(w.ctx, newPod("north", "c", "1"), metav1.CreateOptions{})
			w.must(err)
			w.nextSection("updated")
			_, err = client.Update(w.ctx, newPod("north", "a", "2"), metav1.UpdateOptions{})
			w.must(err)
			w.nextSection("deleted")
			w.must(client.Delete(w.ctx, "a", metav1.DeleteOptions{}))

			w.nextSection("late handler")
			w.follow(pods.Informer())
		},
		want: `
			add n@1 (initial)
			add north/a@1 (initial)
			add south/b@1 (initial)
			-- listed --
			"": 1 in north, 2 in all
			"v=1": 1 in north, 2 in all
			"v=2": 0 in north, 0 in all
			got n@1
			pod "b" not found
			-- changed --
			add north/c@1
			-- updated --
			update north/a@1 -> north/a@2
			-- deleted --
			delete north/a@2
			-- late handler --
			add north/c@1 (initial)
			add south/b@1 (initial)`,
	}.run(t)
}

// TestStart starts informers once, those asked for later when asked to again,
// and none after Shutdown.
func TestStart(t *testing.T) {
	story{
		objects: small,
		script: func(w *storyRunner) {
			requests := func() {
				for _, a := range w.client.Actions() {
					w.record("%s %s", a.GetVerb(), a.GetResource().Resource)
				}
				w.client.ClearActions()
			}
			w.factory.Core().V1().Pods().Informer()
			w.factory.StartWithContext(w.ctx)
			w.factory.Start(w.ctx.Done())
			w.nextSection("two starts")
			requests()

			w.factory.Core().V1().Pods().Informer()
			w.factory.Core().V1().Nodes().Informer()
			w.nextSection("not started")
			requests()
			w.factory.Start(w.ctx.Done())
			w.nextSection("third start")
			requests()

			w.nextSection("shutting down")
			done := make(chan struct{})
			for range 2 {
				go func() { w.factory.Shutdown(); w.record("shut down"); done <- struct{}{} }()
			}
			w.nextSection("cancelled")
			w.cancel()
			<-done
			<-done
			w.client.ClearActions()
			w.factory.Core().V1().Services().Informer()
			w.factory.Start(nil)
			w.nextSection("after shutdown")
			requests()
			w.record("waited for %d", len(w.factory.WaitForCacheSync(nil)))
		},
		want: `
			-- two starts --
			list pods
			watch pods
			-- not started --
			-- third start --
			list nodes
			watch nodes
			-- shutting down --
			-- cancelled --
			shut down
			shut down
			-- after shutdown --
			waited for 2`,
	}.run(t)
}

// TestWaitForCacheSync knows which informers synced, and why others did not.
func TestWaitForCacheSync(t *testing.T) {
	catchErrors(t, func(error) {}) // of the lists that fail
	story{
		objects: small,
		script: func(w *storyRunner) {
			report := func(synced map[reflect.Type]bool) {
				for t, ok := range synced {
					w.record("%v: %t", t, ok)
				}
			}
			w.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("no nodes today")
			})
			w.factory.Core().V1().Services().Informer()
			w.nextSection("nothing started")
			report(w.factory.WaitForCacheSync(w.ctx.Done()))

			w.nextSection("services")
			w.factory.StartWithContext(w.ctx)
			w.factory.Core().V1().Nodes().Informer()
			result := w.factory.WaitForCacheSyncWithContext(w.ctx)
			report(result.Synced)
			w.record("error: %v", result.AsError())

			w.nextSection("nodes")
			w.factory.StartWithContext(w.ctx)
			go func() { w.wait(time.Minute); w.cancel() }()
			result = w.factory.WaitForCacheSyncWithContext(w.ctx)
			report(result.Synced)
			w.record("error: %v", result.AsError())
			report(w.factory.WaitForCacheSync(w.ctx.Done()))
		},
		want: `
			-- nothing started --
			-- services --
			*v1.Service: true
			error: <nil>
			-- nodes --
			*v1.Node: false
			*v1.Node: false
			*v1.Service: true
			*v1.Service: true
			error: failed to sync all caches: *v1.Node: context canceled`,
	}.run(t)
}

// TestName gives the informers the factory's name and takes it back at the end.
func TestName(t *testing.T) {
	story{
		choices: choices{named: true},
		script: func(w *storyRunner) {
			name := w.factory.InformerName()
			w.record("named: %t", name.Name() == w.Name())
			pods, nodes := corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("nodes")
			w.factory.Core().V1().Pods().Informer()
			w.record("pods free: %t, nodes free: %t", name.WithResource(pods).Reserved(), name.WithResource(nodes).Reserved())
			_, err := cache.NewInformerName(name.Name())
			w.record("name free: %t", err == nil)
			w.nextSection("shut down")
			w.factory.Shutdown()
			again, err := cache.NewInformerName(name.Name())
			w.must(err)
			w.record("name free: true")
			again.Release()
			w.factory.Shutdown()
		},
		want: `
			name free: false
			named: true
			pods free: false, nodes free: true
			-- shut down --
			name free: true`,
	}.run(t)
}

// TestNoClient fills indexers by hand, as unit tests of controllers do.
func TestNoClient(t *testing.T) {
	for name, make := range factories {
		t.Run(name, func(t *testing.T) {
			f := make(nil, choices{}, nil)
			pods := f.Core().V1().Pods()
			if err := pods.Informer().GetIndexer().Add(newPod("north", "a", "1")); err != nil {
				t.Fatal(err)
			}
			found, err := pods.Lister().Pods("north").List(labels.Everything())
			if err != nil || len(found) != 1 {
				t.Errorf("the lister has %d pods, error %v", len(found), err)
			}
			f.Shutdown()
		})
	}
}
