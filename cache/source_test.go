package cache

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
)

// TestFakesMayLeaveNamesOut follows a fake clientset. It does not make names from
// generateName, as a server does, so that tests of controllers that create pods have
// pods without a name.
func TestFakesMayLeaveNamesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		informer := NewSharedIndexInformer(ToListWatcherWithWatchListSemantics(&ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return client.CoreV1().Pods("").List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.CoreV1().Pods("").Watch(ctx, o)
			},
		}, client), &corev1.Pod{}, 0, Indexers{})
		var seen []string
		if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { seen = append(seen, "add "+o.(*corev1.Pod).GenerateName) },
			UpdateFunc: func(_, o any) { seen = append(seen, "update "+o.(*corev1.Pod).Spec.NodeName) },
			DeleteFunc: func(o any) { seen = append(seen, "delete "+o.(*corev1.Pod).Spec.NodeName) },
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		defer running.Wait()
		defer cancel()
		if !WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Fatal("the informer does not sync")
		}
		pods := client.CoreV1().Pods("north")
		pod, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if keys := informer.GetStore().ListKeys(); strings.Join(keys, " ") != "north/" {
			t.Errorf("the store has %q", keys)
		}
		pod = pod.DeepCopy()
		pod.Spec.NodeName = "n1"
		if _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := pods.Delete(ctx, "", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := strings.Join(seen, ", "); got != "add job-, update n1, delete n1" {
			t.Errorf("the handler saw %q", got)
		}
	})
}

// Tests send any version through a fake watch. Handlers get an event with a lower version
// too, and the informer keeps the watch, because a test has only one.
func TestVersionsOfAFakeWatch(t *testing.T) {
	listing(t)
	want := []string{"a@50", "a@10", "b@5", "a@10"}
	for name, library := range configMapInformers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := watch.NewFake()
				lists := 0
				informer := library(&ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						lists++
						return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return server, nil },
				})
				var told []string
				tell := func(o any) {
					m := o.(metav1.Object)
					told = append(told, m.GetName()+"@"+m.GetResourceVersion())
				}
				if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }}); err != nil {
					t.Fatal(err)
				}
				stop := running(informer.RunWithContext)
				for _, o := range want {
					object, version, _ := strings.Cut(o, "@")
					server.Modify(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object, ResourceVersion: version}})
					time.Sleep(10 * time.Minute)
				}
				synctest.Wait()
				if !slices.Equal(told, want) || lists != 1 {
					t.Errorf("the handler was told %q by %d lists, want %q by one", told, lists, want)
				}
				stop()
			})
		})
	}
}

// Tests stop a fake watch to see how its user copes, and list the same objects for ever.
// The informer continues with the next watch, and keeps what it was sent.
func TestFakeWatchThatEnds(t *testing.T) {
	listing(t)
	for name, library := range configMapInformers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := watch.NewFake(), watch.NewFake()
				watches := []*watch.FakeWatcher{first, second}
				lists := 0
				informer := library(&ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						lists++
						return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
						next := watches[0]
						watches = watches[1:]
						return next, nil
					},
				})
				stop := running(informer.RunWithContext)
				first.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "20"}})
				synctest.Wait()
				first.Stop()
				time.Sleep(10 * time.Minute)
				if keys := informer.GetStore().ListKeys(); !slices.Equal(keys, []string{"a"}) || lists != 1 || second.IsStopped() {
					t.Errorf("the store has %q after %d lists, and the second watch was stopped: %t", keys, lists, second.IsStopped())
				}
				stop()
			})
		})
	}
}

// Tests send the delete of an object that was never there. Handlers are notified of it,
// as with client-go.
func TestFakeDeleteOfWhatWasNeverThere(t *testing.T) {
	listing(t)
	for name, library := range configMapInformers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := watch.NewFake()
				informer := library(&ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return server, nil },
				})
				var told []string
				handler := ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
					m := o.(metav1.Object)
					told = append(told, m.GetName()+"@"+m.GetResourceVersion())
				}}
				if _, err := informer.AddEventHandler(handler); err != nil {
					t.Fatal(err)
				}
				stop := running(informer.RunWithContext)
				a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "5"}}
				server.Delete(a)
				server.Add(a)
				server.Delete(a)
				server.Delete(a)
				synctest.Wait()
				if !slices.Equal(told, []string{"a@5", "a@5", "a@5"}) {
					t.Errorf("the handler was told of the deletes %q", told)
				}
				stop()
			})
		})
	}
}
