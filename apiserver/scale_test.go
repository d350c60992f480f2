package apiserver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Scales are seen and set by clients of either encoding, of a workload and at the
// version that was read.
func TestScale(t *testing.T) {
	server := New(Options{})
	t.Cleanup(server.Close)
	for _, kind := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := server.Config()
		config.ContentType, config.AcceptContentTypes = kind, kind
		deployments := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("default")
		name := "web-" + kind[len(kind)-4:]
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}}
		_, err := deployments.Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scale, err := deployments.GetScale(t.Context(), name, metav1.GetOptions{})
		if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app="+name {
			t.Fatalf("%s: %+v, %v", kind, scale, err)
		}
		stale := scale.DeepCopy()
		scale.Spec.Replicas = 4
		if scale, err = deployments.UpdateScale(t.Context(), name, scale, metav1.UpdateOptions{}); err != nil || scale.Spec.Replicas != 4 {
			t.Fatalf("%s: %+v, %v", kind, scale, err)
		}
		if _, err := deployments.UpdateScale(t.Context(), name, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("%s: a scale of before is set: %v", kind, err)
		}
		if d, err := deployments.Get(t.Context(), name, metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 4 || d.Generation != 2 {
			t.Errorf("%s: %+v, %v", kind, d, err)
		}
	}
}
