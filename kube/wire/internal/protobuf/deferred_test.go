package protobuf

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// A text that occurs twice in an object is in memory once.
func TestTextTwiceInAnObject(t *testing.T) {
	once := 0
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
	for n := range 200 {
		pod := wiretest.Replica("set", n)
		pod.Status.PodIP = fmt.Sprintf("10.11.%d.%d", n, 100+n)
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		got := decodePod(t, d, wiretest.Marshal(t, pod))
		if got.Status.PodIP != pod.Status.PodIP || got.Status.PodIPs[0].IP != pod.Status.PodIP {
			t.Fatalf("addresses %q and %q, want %q", got.Status.PodIP, got.Status.PodIPs[0].IP, pod.Status.PodIP)
		}
		if unsafe.StringData(got.Status.PodIP) == unsafe.StringData(got.Status.PodIPs[0].IP) {
			once++
		}
	}
	// A list that may repeat is a part with memory of its own, until the reader has
	// learned that it does not. The race detector drops readers all the time.
	if once < 100 && !wiretest.RaceEnabled {
		t.Errorf("%d of 200 pods have their address once", once)
	}
}

// Objects whose maps differ in an entry share the text of the others, and no map.
func TestMapsThatDifferShareText(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
	shared := 0
	var last corev1.Pod
	for n := range 200 {
		pod := wiretest.Replica("set", n)
		pod.Annotations = map[string]string{
			"example.com/address": fmt.Sprintf("10.11.%d.%d", n, 100+n),
			"example.com/network": "the network that all pods are in",
			"example.com/empty":   "",
		}
		got := decodePod(t, d, wiretest.Marshal(t, pod))
		if fmt.Sprint(got.Annotations) != fmt.Sprint(pod.Annotations) {
			t.Fatalf("annotations %v, want %v", got.Annotations, pod.Annotations)
		}
		if sameMap(got.Annotations, last.Annotations) {
			t.Fatalf("pods %d and %d have one map", n-1, n)
		}
		const network = "example.com/network"
		if unsafe.StringData(got.Annotations[network]) == unsafe.StringData(last.Annotations[network]) {
			shared++
		}
		last = *got
	}
	// Garbage collections drop readers, which remember texts; the race detector
	// drops them all the time.
	if shared < 40 && !wiretest.RaceEnabled {
		t.Errorf("%d of 200 pods share text that all have", shared)
	}
}
