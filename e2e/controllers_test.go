package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The real kube-controller-manager, which nobody here wrote, works with the
// embedded server as with its own: Deployments get their pods, roll out, get back
// what was deleted, and take their pods with them when they go.
func TestControllerManager(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a program")
	}
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	server := StartEmbedded(t)
	manager := startControllerManager(t, dir, server.writeKubeconfig(dir), newCredentials(t, dir))
	t.Cleanup(manager.kill)
	server.StartKubelet()
	server.Namespace(namespace)
	server.eventually(time.Minute, func(ctx context.Context) error {
		_, err := server.admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})

	deployments, pods := server.admin.AppsV1().Deployments(namespace), server.admin.CoreV1().Pods(namespace)
	if _, err := deployments.Create(t.Context(), newDeployment("web", 20), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait := func(what string, right func([]corev1.Pod) bool) {
		t.Helper()
		server.eventually(time.Minute, func(ctx context.Context) error {
			if err := deployed(ctx, server.admin, namespace); err != nil {
				return err
			}
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err == nil && !right(list.Items) {
				err = fmt.Errorf("%s: there are %d pods", what, len(list.Items))
			}
			return err
		})
	}
	all := func(fits func(corev1.Pod) bool) func([]corev1.Pod) bool {
		return func(pods []corev1.Pod) bool {
			for _, pod := range pods {
				if !fits(pod) {
					return false
				}
			}
			return len(pods) == 20
		}
	}
	owned := all(func(pod corev1.Pod) bool {
		owner := metav1.GetControllerOf(&pod)
		return owner != nil && owner.Kind == "ReplicaSet" && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning
	})
	wait("pods are made", owned)

	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{Limit: 5}); err != nil {
		t.Fatal(err)
	}
	wait("what was deleted comes back", owned)

	image := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"registry.example/app:2.0"}]}}}}`)
	if _, err := deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, image, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	wait("the new image is rolled out", all(func(pod corev1.Pod) bool { return pod.Spec.Containers[0].Image == "registry.example/app:2.0" }))

	if err := deployments.Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	wait("the pods go with their Deployment", func(pods []corev1.Pod) bool { return len(pods) == 0 })
}
