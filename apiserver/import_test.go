package apiserver

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// What is imported is what the other server had, also what this one would set itself.
func TestImport(t *testing.T) {
	server := New(Options{})
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(server.Config())
	events, err := client.CoreV1().Pods("shop").Watch(t.Context(), metav1.ListOptions{ResourceVersion: server.Version()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	state := func(uid string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: types.UID(uid), ResourceVersion: "7", Generation: 3,
			CreationTimestamp: metav1.Unix(1e9, 0), Finalizers: []string{"example.com/hold"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "owner"}},
		}}
		change(p)
		return p
	}
	deleted := metav1.NewTime(time.Unix(1e9+60, 0))
	for _, p := range []*corev1.Pod{
		state("one", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		state("one", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &deleted, nil }),
		state("two", func(*corev1.Pod) {}),
	} {
		if err := server.Import(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Drop(state("", func(*corev1.Pod) {})); err != nil {
		t.Fatal(err)
	}
	if err := server.Drop(state("", func(*corev1.Pod) {})); err != nil {
		t.Errorf("what is not there cannot be dropped: %v", err)
	}
	for _, want := range []struct {
		kind watch.EventType
		uid  types.UID
		gone bool
	}{{watch.Added, "one", false}, {watch.Modified, "one", true}, {watch.Deleted, "one", true}, {watch.Added, "two", false}, {watch.Deleted, "two", false}} {
		e := <-events.ResultChan()
		p, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type != want.kind || p.UID != want.uid || (p.DeletionTimestamp != nil) != want.gone || p.Generation != 3 || p.CreationTimestamp.Unix() != 1e9 || p.ResourceVersion == "7" || len(p.OwnerReferences) != 1 {
			t.Errorf("want %+v, got %s of %+v", want, e.Type, e.Object)
		}
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace was not made: %v", err)
	}
}
