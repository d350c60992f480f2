package e2e

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// largestDeployment is how many pods one Deployment makes at most, so that
// several controllers work at once.
const largestDeployment = 500

// Pods makes Deployments of n pods in all in a namespace, which it creates, and
// waits until a running [Kubelet] has made each of them ready.
func (c *Cluster) Pods(namespace string, n int) {
	c.t.Helper()
	ctx := c.t.Context()
	c.Namespace(namespace)
	for i := 0; n > 0; i++ {
		size := min(n, largestDeployment)
		n -= size
		deployment := newDeployment(fmt.Sprintf("app-%d", i), int32(size))
		if _, err := c.admin.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.Settle(namespace)
}

// Namespace creates a namespace and waits for the account that its pods run
// under, without which no pod is admitted.
func (c *Cluster) Namespace(name string) {
	c.t.Helper()
	c.Endpoint.Namespace(name)
	if c.controllers == nil {
		return
	}
	c.eventually(30*time.Second, func(ctx context.Context) error {
		_, err := c.admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// Settle waits until all Deployments of a namespace have the pods that they want,
// and these are ready.
func (c *Cluster) Settle(namespace string) {
	c.t.Helper()
	c.eventually(5*time.Minute, func(ctx context.Context) error { return deployed(ctx, c.admin, namespace) })
}

func deployed(ctx context.Context, client kubernetes.Interface, namespace string) error {
	list, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		want := *d.Spec.Replicas
		if d.Status.ObservedGeneration != d.Generation || d.Status.Replicas != want || d.Status.ReadyReplicas != want {
			return fmt.Errorf("%s/%s: wants %d pods, has %d, ready are %d", namespace, d.Name, want, d.Status.Replicas, d.Status.ReadyReplicas)
		}
	}
	return nil
}

// newDeployment returns a Deployment whose pods are deleted at once: no kubelet
// would report that a container has stopped.
func newDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(),
			},
		},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name:  "main",
			Image: "registry.example/app:1.0",
			Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "LEVEL", Value: "info"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			},
		}},
	}
}

// barePod returns a pod that no Deployment owns.
func barePod(name string) *corev1.Pod { return podOf("bare", name) }

func podOf(app, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       podSpec(),
	}
}

// scripted is the app label of pods that a test changes by a script, and that are left alone
// by the churn.
const scripted = "scripted"
