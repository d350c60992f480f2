package protobuf

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
	"github.com/tarnproject/tarn/kube/wire/internal/wiretest"
)

// scratched is a pod with a quantity outside a map that has no text until String is
// called.
func scratched(uid string) *corev1.Pod {
	limit := resource.MustParse("512Mi")
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			NodeName: "a node with a name that is long enough to be taken over from state to state",
			Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}},
			Tolerations: []corev1.Toleration{{Key: "a toleration that all have"}},
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/an-image-with-a-long-name:v1", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: limit}}}},
		},
	}
}

// A quantity that is not in canonical form caches its text at the first String.
// Objects that shared one would race although nobody changes anything.
func TestProtobufQuantitiesArePrivate(t *testing.T) {
	d := newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()})
	var pods []*corev1.Pod
	for _, uid := range []string{"a", "b", "c", "d"} {
		object, err := d.Decode(wiretest.Marshal(t, scratched(uid)))
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, object.(*corev1.Pod))
	}
	wiretest.WantPrivateQuantities(t, pods)
}

// Two states of one object do not share such a quantity either.
func TestLastStateQuantitiesArePrivate(t *testing.T) {
	h := hold(newProtobuf(t, reflect.TypeFor[corev1.Pod](), pool.Options{Pool: pool.New()}))
	pod := scratched("a")
	last := h.pod(t, Added, pod)
	for n := range 5 {
		next := h.pod(t, Modified, wiretest.Restarted(pod, n))
		if next.Spec.Volumes[0].EmptyDir.SizeLimit == last.Spec.Volumes[0].EmptyDir.SizeLimit {
			t.Fatal("two states have a quantity in common that can be asked in place")
		}
		if n > 0 && &next.Spec.Containers[0] != &last.Spec.Containers[0] {
			t.Error("the containers were made anew although their quantities are in maps")
		}
		last = next
	}
}
