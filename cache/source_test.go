package cache

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
