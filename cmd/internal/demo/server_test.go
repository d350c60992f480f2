package demo

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/apiserver"
)

// cluster is a workload on an API server, in virtual time.
type cluster struct {
	*testing.T
	client kubernetes.Interface
	w      *Workload
}

func onServerFor(t *testing.T, config Config, run func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{})
		defer server.Close()
		target, err := On(server)
		if err != nil {
			t.Fatal(err)
		}
		w, err := Build(t.Context(), target, config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { w.Run(ctx) })
		running.Go(func() {
			if err := w.WatchOthers(ctx, server.Config()); err != nil {
				t.Error(err)
			}
		})
		run(&cluster{T: t, client: kubernetes.NewForConfigOrDie(server.Config()), w: w})
	})
}

func (c *cluster) wait(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

func (c *cluster) deployment(namespace, name string) *appsv1.Deployment {
	c.Helper()
	d, err := c.client.AppsV1().Deployments(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return d
}

func (c *cluster) pods(namespace, app string) []corev1.Pod {
	c.Helper()
	list, err := c.client.CoreV1().Pods(namespace).List(c.Context(), metav1.ListOptions{LabelSelector: labels.Set{nameLabel: app}.String()})
	if err != nil {
		c.Fatal(err)
	}
	return list.Items
}

func (c *cluster) patch(namespace, name, patch string) {
	c.Helper()
	if _, err := c.client.AppsV1().Deployments(namespace).Patch(c.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
}

// The server accepts every write, and its objects are consistent.
func TestOnServer(t *testing.T) {
	onServerFor(t, Config{Pods: 60, Databases: 6, Rate: 30, Seed: 11}, func(c *cluster) {
		c.wait(time.Minute)
		c.w.SetRate(0)
		c.wait(3 * time.Minute)
		if c.w.refused != nil {
			c.Errorf("the server refused: %v", c.w.refused)
		}
		deployments, err := c.client.AppsV1().Deployments("").List(c.Context(), metav1.ListOptions{})
		if err != nil {
			c.Fatal(err)
		}
		if len(deployments.Items) != len(c.w.apps) || len(c.w.apps) == 0 {
			c.Errorf("%d deployments, want %d", len(deployments.Items), len(c.w.apps))
		}
		for _, d := range deployments.Items {
			if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas {
				c.Errorf("%s is not at rest: generation %d, %+v", d.Name, d.Generation, d.Status)
			}
			pods := c.pods(d.Namespace, d.Name)
			if len(pods) != int(*d.Spec.Replicas) {
				c.Errorf("%s has %d pods, want %d", d.Name, len(pods), *d.Spec.Replicas)
			}
			for _, p := range pods {
				set, err := c.client.AppsV1().ReplicaSets(p.Namespace).Get(c.Context(), p.OwnerReferences[0].Name, metav1.GetOptions{})
				if err != nil || set.UID != p.OwnerReferences[0].UID || set.OwnerReferences[0].UID != d.UID {
					c.Errorf("%s belongs to %+v, which is not a set of %s: %v", p.Name, p.OwnerReferences[0], d.Name, err)
				}
			}
		}
	})
}

// The workload reacts to changes that another user makes with kubectl.
func TestOtherUsers(t *testing.T) {
	onServerFor(t, Config{Pods: 60, Seed: 12}, func(c *cluster) {
		c.wait(time.Second)
		const ns, app = "shop", "storefront"

		c.patch(ns, app, `{"spec":{"replicas":7}}`)
		c.wait(time.Minute)
		if d := c.deployment(ns, app); d.Status.ReadyReplicas != 7 || len(c.pods(ns, app)) != 7 {
			c.Errorf("scaled to 7: %d ready of %d", d.Status.ReadyReplicas, len(c.pods(ns, app)))
		}

		c.patch(ns, app, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":"mine:1"}]}}}}`, app))
		c.wait(2 * time.Minute)
		for _, p := range c.pods(ns, app) {
			if p.Spec.Containers[0].Image != "mine:1" {
				c.Errorf("%s still runs %s", p.Name, p.Spec.Containers[0].Image)
			}
		}
		if d := c.deployment(ns, app); d.Status.UpdatedReplicas != 7 || d.Status.ObservedGeneration != d.Generation {
			c.Errorf("after a new image: generation %d, %+v", d.Generation, d.Status)
		}

		for _, nonsense := range []string{`{"spec":{"replicas":-1}}`, `{"spec":{"template":{"spec":{"containers":null}}}}`} {
			c.patch(ns, app, nonsense)
			c.wait(10 * time.Second)
		}
		if got := len(c.pods(ns, app)); got != 7 {
			c.Errorf("nonsense was written, and there are %d pods", got)
		}

		victim := c.pods(ns, app)[0].Name
		if err := c.client.CoreV1().Pods(ns).Delete(c.Context(), victim, metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		c.wait(time.Minute)
		if _, err := c.client.CoreV1().Pods(ns).Get(c.Context(), victim, metav1.GetOptions{}); err == nil || len(c.pods(ns, app)) != 7 {
			c.Errorf("a pod was deleted: %v, and there are %d", err, len(c.pods(ns, app)))
		}

		if err := c.client.AppsV1().Deployments(ns).Delete(c.Context(), app, metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		c.wait(time.Minute)
		sets, err := c.client.AppsV1().ReplicaSets(ns).List(c.Context(), metav1.ListOptions{LabelSelector: nameLabel + "=" + app})
		if err != nil || len(sets.Items) > 0 || len(c.pods(ns, app)) > 0 {
			c.Errorf("the deployment was deleted, and left are %d sets and %d pods: %v", len(sets.Items), len(c.pods(ns, app)), err)
		}
	})
}

func TestAnotherUserCreatesADeployment(t *testing.T) {
	onServerFor(t, Config{Pods: 10, Rate: 20, Seed: 13}, func(c *cluster) {
		tags := map[string]string{nameLabel: "guest"}
		_, err := c.client.AppsV1().Deployments("default").Create(c.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "guest"},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: tags}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: tags}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			c.Fatal(err)
		}
		c.wait(time.Minute)
		c.w.SetRate(0)
		c.wait(time.Minute)
		if d := c.deployment("default", "guest"); d.Status.ReadyReplicas != 4 || *d.Spec.Replicas != 4 {
			c.Errorf("%d of 4 replicas are ready", d.Status.ReadyReplicas)
		}
	})
}

// A deleted namespace is not created again, and the rest of the cluster continues.
func TestAnotherUserDeletesANamespace(t *testing.T) {
	onServerFor(t, Config{Pods: 40, Databases: 12, Rate: 20, Seed: 14}, func(c *cluster) {
		c.wait(5 * time.Second)
		if err := c.client.CoreV1().Namespaces().Delete(c.Context(), "shop", metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		c.wait(time.Minute)
		if _, err := c.client.CoreV1().Namespaces().Get(c.Context(), "shop", metav1.GetOptions{}); err == nil {
			c.Error("the namespace is still there, or back")
		}
		before := c.w.Writes()
		c.wait(20 * time.Second)
		if c.w.Writes()-before < 100 {
			c.Errorf("only %d writes in 20 seconds", c.w.Writes()-before)
		}
	})
}
