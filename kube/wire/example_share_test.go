package wire_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire"
)

// Two pods with the same tolerations hold them once.
func ExampleSharer() {
	pod := func(name string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "wet", Value: "always"}}}}
		p.Name = name
		return p
	}
	sharer := wire.NewSharer(wire.NewPool(), wire.Options{})
	heron := sharer.Share(pod("heron")).(*corev1.Pod)
	teal := sharer.Share(pod("teal")).(*corev1.Pod)
	fmt.Println(heron.Name, teal.Name, &heron.Spec.Tolerations[0] == &teal.Spec.Tolerations[0])

	// Output: heron teal true
}
