package wire_test

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/kube/wire"
)

// Two pods with the same tolerations share one list.
func ExampleDecoder_Protobuf() {
	parts := wire.NewPool()
	pods, err := wire.NewDecoder(reflect.TypeFor[*corev1.Pod](), wire.Options{
		Pool: parts,
		Drop: []string{"metadata.managedFields"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	decode := func(name string) *corev1.Pod {
		sent := corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "spot", Operator: "Exists"}}}}
		sent.Name = name
		raw, _ := sent.Marshal()
		pod, err := pods.Protobuf(raw)
		if err != nil {
			fmt.Println(err)
			return nil
		}
		return pod.(*corev1.Pod)
	}
	a, b := decode("a"), decode("b")
	fmt.Println(a.Name, b.Name, &a.Spec.Tolerations[0] == &b.Spec.Tolerations[0], parts.Stats().Parts)
	// Output: a b true 1
}
