package framework

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/tools/cache/testing"
)

// A source made here can replace client-go's.
func TestSourcesAreClientGos(t *testing.T) {
	for want, list := range map[string]func(metav1.ListOptions) (any, error){
		"*v1.List":                      asAny((*upstream.FakeControllerSource).List, NewFakeControllerSource()),
		"*v1.PersistentVolumeList":      asAny((*upstream.FakePVControllerSource).List, NewFakePVControllerSource()),
		"*v1.PersistentVolumeClaimList": asAny((*upstream.FakePVCControllerSource).List, NewFakePVCControllerSource()),
	} {
		got, err := list(metav1.ListOptions{})
		if err != nil || fmt.Sprintf("%T", got) != want {
			t.Errorf("got a %T, %v; want a %s", got, err, want)
		}
	}
	source := NewFakeControllerSource()
	w, err := source.Watch(metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if event := <-w.ResultChan(); event.Object.(*corev1.Pod).Name != "a" {
		t.Errorf("got %v", event)
	}
}

func asAny[S, L any](list func(S, metav1.ListOptions) (L, error), source S) func(metav1.ListOptions) (any, error) {
	return func(options metav1.ListOptions) (any, error) { return list(source, options) }
}
