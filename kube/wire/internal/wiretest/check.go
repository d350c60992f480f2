package wiretest

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// CollectUntil runs garbage collections until done returns true.
func CollectUntil(t testing.TB, done func() bool) {
	t.Helper()
	for range 100 {
		runtime.GC()
		for range 100 {
			if done() {
				return
			}
			runtime.Gosched()
		}
	}
	t.Fatal("garbage collections do not make it true")
}

// WantPrivateQuantities fails if pods share a quantity that caches its text when
// String is called, or if they do not share what they may.
func WantPrivateQuantities(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for i, one := range pods {
		for _, other := range pods[i+1:] {
			if one.Spec.Volumes[0].EmptyDir.SizeLimit == other.Spec.Volumes[0].EmptyDir.SizeLimit {
				t.Error("two pods share a quantity whose String method writes to it")
			}
		}
	}
	if &pods[2].Spec.Tolerations[0] != &pods[3].Spec.Tolerations[0] {
		t.Error("tolerations are not shared")
	}
	if &pods[2].Spec.Containers[0] != &pods[3].Spec.Containers[0] {
		t.Error("containers are not shared although their quantities are in maps")
	}
}
