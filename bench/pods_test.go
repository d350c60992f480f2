package main

import (
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsAreAsLargeAsTheirCommentsSay(t *testing.T) {
	if n := newPod(smallPod, 7).Size(); n < 1_400 || n > 1_800 {
		t.Errorf("a small pod is %d bytes on the wire, want about 1,600", n)
	}
	perPod := func(build func(i int) *corev1.Pod) uint64 {
		before := liveHeap()
		pods := make([]*corev1.Pod, 2_000)
		for i := range pods {
			pods[i] = build(i)
		}
		after := liveHeap()
		runtime.KeepAlive(pods)
		return (after - before) / uint64(len(pods))
	}
	if n := perPod(func(i int) *corev1.Pod { return newPod(largePod, i) }); n < 7_500 || n > 9_000 {
		t.Errorf("a large pod is %d bytes of heap, want about 8,000", n)
	}
	base := newPod(smallPod, 0)
	if n := perPod(func(i int) *corev1.Pod { return updated(base, i) }); n < 1_300 || n > 1_900 {
		t.Errorf("an update is %d bytes of heap, want about 1,600", n)
	}
}

func TestAPodIsBuiltAnewAndTheSame(t *testing.T) {
	a, b := newPod(largePod, 42), newPod(largePod, 42)
	if !reflect.DeepEqual(a, b) {
		t.Error("two builds of one pod differ; a relist of it would not be unchanged")
	}
	if unsafe.StringData(a.Name) == unsafe.StringData(b.Name) || &a.Spec.Containers[0] == &b.Spec.Containers[0] {
		t.Error("two builds of one pod share memory; decoded ones would not")
	}
	if reflect.DeepEqual(a, newPod(largePod, 43)) {
		t.Error("two pods are the same")
	}
}

func TestAnUpdateLeavesThePodAlone(t *testing.T) {
	pod := newPod(smallPod, 3)
	next := updated(pod, 500)
	if !reflect.DeepEqual(pod, newPod(smallPod, 3)) {
		t.Error("the update wrote into the pod")
	}
	if next.ResourceVersion != version(500) || reflect.DeepEqual(next.Status, pod.Status) {
		t.Errorf("version %s, status changed: %v; want version %s and another status",
			next.ResourceVersion, !reflect.DeepEqual(next.Status, pod.Status), version(500))
	}
}
