package share

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tarnproject/tarn/kube/wire/internal/pool"
)

// A quantity without a text caches it at the first String. Objects that shared one
// would race although nobody changes anything.
func TestShareQuantitiesArePrivate(t *testing.T) {
	sharer := New(pool.New(), pool.Options{})
	var pods []*corev1.Pod
	for range 4 {
		limit := *resource.NewQuantity(1<<30, resource.BinarySI) // without a text
		pods = append(pods, sharer.Share(&corev1.Pod{Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}},
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: limit}}}},
		}}).(*corev1.Pod))
	}
	for i, one := range pods {
		for _, other := range pods[i+1:] {
			if one.Spec.Volumes[0].EmptyDir.SizeLimit == other.Spec.Volumes[0].EmptyDir.SizeLimit {
				t.Error("two pods have a quantity in common that can be asked in place")
			}
		}
	}
	if &pods[2].Spec.Containers[0] != &pods[3].Spec.Containers[0] {
		t.Error("containers are not shared although their quantities are in maps")
	}
}

// Two states of one object do not share such a quantity either.
func TestShareLikeQuantitiesArePrivate(t *testing.T) {
	sharer := New(pool.New(), pool.Options{})
	state := func() *corev1.Pod { // whose quantities are without a text
		limit := *resource.NewQuantity(1<<30, resource.BinarySI)
		return &corev1.Pod{Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}},
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: limit}}}},
		}}
	}
	for name, shareWith := range map[string]func(object, like any) any{"like": sharer.ShareLike, "own": sharer.ShareOwn} {
		last := shareWith(state(), nil).(*corev1.Pod)
		for range 3 {
			next := shareWith(state(), last).(*corev1.Pod)
			if next.Spec.Volumes[0].EmptyDir.SizeLimit == last.Spec.Volumes[0].EmptyDir.SizeLimit {
				t.Fatalf("%s: two states have a quantity in common that can be asked in place", name)
			}
			if &next.Spec.Containers[0] != &last.Spec.Containers[0] {
				t.Errorf("%s: containers are not shared although their quantities are in maps", name)
			}
			last = next
		}
	}
}
