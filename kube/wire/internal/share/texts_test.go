package share

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// TestShareOwnTextsLieTogether: the text that only one object has is one piece of
// memory, and not the input's.
func TestShareOwnTextsLieTogether(t *testing.T) {
	sharer := New(pool.New(), pool.Options{})
	for n := range 500 {
		pod := wiretest.Replica("set", n)
		before := unsafe.StringData(pod.Name)
		shared := sharer.Share(pod).(*corev1.Pod)
		if !reflect.DeepEqual(shared, wiretest.Replica("set", n)) {
			t.Fatalf("pod %d is not what it was", n)
		}
		if unsafe.StringData(pod.Name) != before {
			t.Fatalf("pod %d was written to", n)
		}
		if n < 400 {
			continue // until the worker has learned what does not repeat
		}
		end := unsafe.Add(unsafe.Pointer(unsafe.StringData(shared.Name)), len(shared.Name))
		if unsafe.Pointer(unsafe.StringData(string(shared.UID))) != end {
			t.Fatalf("pod %d: name and uid lie apart", n)
		}
		if unsafe.StringData(shared.Name) == before {
			t.Fatalf("pod %d still has the text that was given", n)
		}
	}
}

// TestSharePartsTextsLieTogether: the short texts that a part brought to the pool are one
// piece of memory, and are in place before the part has its checksum.
func TestSharePartsTextsLieTogether(t *testing.T) {
	sharer := New(pool.New(), pool.Options{})
	withPorts := func(n int) *corev1.Pod {
		pod := wiretest.Replica("set", n)
		pod.Spec.Containers[0].Ports = nil
		for i := range 3 {
			port := corev1.ContainerPort{Name: fmt.Sprintf("port-%d", i), HostIP: fmt.Sprintf("10.0.0.%d", i)}
			pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, port)
		}
		return pod
	}
	var first *corev1.Pod
	for n := range 3 {
		shared := sharer.ShareOwn(withPorts(n), nil).(*corev1.Pod)
		if !reflect.DeepEqual(shared, withPorts(n)) {
			t.Fatalf("pod %d is not what it was", n)
		}
		if first == nil {
			first = shared
		}
		ports := shared.Spec.Containers[0].Ports
		if &ports[0] != &first.Spec.Containers[0].Ports[0] {
			t.Fatalf("pod %d has ports of its own", n)
		}
		end := uintptr(unsafe.Pointer(unsafe.StringData(ports[0].Name)))
		for i := range ports {
			for _, text := range []string{ports[i].Name, ports[i].HostIP} {
				if uintptr(unsafe.Pointer(unsafe.StringData(text))) != end {
					t.Fatalf("pod %d: %q lies apart", n, text)
				}
				end += uintptr(len(text))
			}
		}
	}
	sharer.pool.Verify()
	if found := sharer.pool.Stats().StrayWrites; found != 0 {
		t.Errorf("%d stray writes, and nobody wrote", found)
	}
}

// TestShareOwnTextIsLetGo: objects that were updated often hold no more memory than
// new ones, although each state takes over what it can from the last one.
func TestShareOwnTextIsLetGo(t *testing.T) {
	const pods = 300
	heapOf := func(updates int) uint64 {
		sharer := New(pool.New(), pool.Options{})
		kept := make([]*corev1.Pod, pods)
		for round := range updates + 1 {
			for n := range kept {
				pod := wiretest.Replica("set", n)
				pod.ResourceVersion = fmt.Sprint(1_000_000 + round)
				// Everything changes at times, but never everything at once.
				pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", round/4%200, n/200, n%200)
				pod.Status.Message = fmt.Sprintf("of pod %d for the %d. time", n, round/3)
				pod.Status.ContainerStatuses[0].ContainerID = fmt.Sprintf("containerd://%064d", round/5*pods+n)
				var like any
				if kept[n] != nil {
					like = kept[n]
				}
				kept[n] = sharer.ShareLike(pod, like).(*corev1.Pod)
			}
		}
		least := uint64(math.MaxUint64)
		for range 10 { // cleanups run concurrently, and not at once
			runtime.GC()
			sharer.pool.Collect()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			least = min(least, stats.HeapAlloc)
		}
		runtime.KeepAlive(kept)
		return least
	}
	base := heapOf(0)
	if updated := heapOf(60); updated > base+pods*512 {
		t.Errorf("%d pods hold %d KB more after 60 updates", pods, (updated-base)/1024)
	}
}

// TestShareOwnMapsLieTogether: labels that are like those of no other object are in the
// map that was given, and their text is one piece of memory.
func TestShareOwnMapsLieTogether(t *testing.T) {
	sharer := New(pool.New(), pool.Options{})
	labelled := func(n int) *corev1.Pod {
		pod := wiretest.Replica("set", n)
		pod.Labels = map[string]string{}
		for i := range 5 {
			pod.Labels[fmt.Sprintf("key-%d-%d", n, i)] = fmt.Sprintf("value-%d-%d", n, i)
		}
		return pod
	}
	for n := range 500 {
		shared := sharer.ShareOwn(labelled(n), nil).(*corev1.Pod)
		if !reflect.DeepEqual(shared, labelled(n)) {
			t.Fatalf("pod %d is not what it was", n)
		}
		if n < 400 || n%100 < 50 {
			continue // until the worker has learned what does not repeat
		}
		first, end, size := ^uintptr(0), uintptr(0), 0
		for k, v := range shared.Labels {
			for _, text := range []string{k, v} {
				at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
				first, end, size = min(first, at), max(end, at+uintptr(len(text))), size+len(text)
			}
		}
		if end-first != uintptr(size) {
			t.Fatalf("pod %d: %d bytes of labels are spread over %d bytes", n, size, end-first)
		}
	}
}

// TestShareOwnListsWithRoom: the values to which the elements of a list point lie together,
// also if the list is copied because its capacity is larger than its length.
func TestShareOwnListsWithRoom(t *testing.T) {
	listed := func() *corev1.Pod {
		pod := wiretest.Replica("set", 1)
		pod.Status.ContainerStatuses = make([]corev1.ContainerStatus, 3, 4)
		for i := range 3 {
			pod.Status.ContainerStatuses[i] = corev1.ContainerStatus{Name: fmt.Sprint(i), Started: new(i == 1)}
		}
		return pod
	}
	sharer := New(pool.New(), pool.Options{})
	for n := range 200 { // until the worker has learned that statuses do not repeat
		pod := listed()
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].ContainerID = fmt.Sprint(n, "-", i)
		}
		statuses := sharer.ShareOwn(pod, nil).(*corev1.Pod).Status.ContainerStatuses
		a, b := uintptr(unsafe.Pointer(statuses[0].Started)), uintptr(unsafe.Pointer(statuses[1].Started))
		if n > 100 && b-a != 8 {
			t.Fatalf("pod %d: the numbers of two statuses are %d bytes apart", n, int(b-a))
		}
	}
}
