package wire

import (
	"reflect"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What someone wrote to shared parts, or to an object's last state, does not show in what
// is decoded after the pool was told not to trust them.
func TestPoolDistrust(t *testing.T) {
	pool := NewPool()
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), Options{Pool: pool}))
	pod := replica("set", 1)
	var held []*corev1.Pod
	for n := range 5 {
		held = append(held, h.pod(t, Again, restarted(pod, n)))
	}
	last := held[len(held)-1]
	last.Spec.NodeName, last.Spec.Containers[0].Image, last.Labels["app"] = "changed", "changed", "changed"
	next := h.pod(t, Again, restarted(pod, 6))
	if next.Spec.NodeName != "changed" || next.Spec.Containers[0].Image != "changed" {
		t.Fatal("nothing is taken over, and the test tests nothing")
	}
	pool.Distrust()
	if n := pool.Stats().Parts; n != 0 {
		t.Errorf("%d parts are left", n)
	}
	want, _ := stockProtobuf(reflect.TypeFor[corev1.Pod](), marshal(t, restarted(pod, 7)))
	for range 3 {
		if got := h.pod(t, Again, restarted(pod, 7)); !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v, want\n%+v", got, want)
		}
	}
	if got := pool.Stats(); got.Mutations != 0 || got.Parts == 0 {
		t.Errorf("stats %+v", got)
	}
	pool.Collect() // whose books are in order
	runtime.KeepAlive(held)
	runtime.KeepAlive(next)
}
