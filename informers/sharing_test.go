package informers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestWithSharing(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			client := fake.NewClientset()
			for _, name := range []string{"a", "b"} {
				if err := client.Tracker().Add(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
					Spec:       corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "wet", Value: "always"}}},
				}); err != nil {
					t.Fatal(err)
				}
			}
			factory := NewSharedInformerFactoryWithOptions(client, 0, WithSharing(on))
			lister := factory.Core().V1().Pods().Lister().Pods("ns")
			stop := make(chan struct{})
			factory.Start(stop)
			factory.WaitForCacheSync(stop)
			a, errA := lister.Get("a")
			b, errB := lister.Get("b")
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if shared := &a.Spec.Tolerations[0] == &b.Spec.Tolerations[0]; shared != on {
				t.Errorf("shared: %v", shared)
			}
			close(stop)
			factory.Shutdown()
		})
	}
}
