package informers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/cache"
	"github.com/tarnproject/tarn/informers"
)

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name[:1]}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "main", Image: "lake:1", Env: []corev1.EnvVar{{Name: "DEPTH", Value: "deep"}},
		}}},
	}
}

// serve starts a server with some pods and a node.
func serve(t *testing.T) (*apiserver.Server, *rest.Config) {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{AnyNamespace: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for i := range 30 {
		if err := server.Put(pod("north", fmt.Sprintf("a%d", i)), pod("south", fmt.Sprintf("b%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}); err != nil {
		t.Fatal(err)
	}
	return server, server.Config()
}

// started runs a factory until the test ends, and waits until it has synced.
func started(t *testing.T, factory informers.SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel)
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(t.Context()).AsError(); err != nil {
		t.Fatal(err)
	}
}

func forConfig(t *testing.T, config *rest.Config, options ...informers.SharedInformerOption) informers.SharedInformerFactory {
	t.Helper()
	factory, err := informers.NewSharedInformerFactoryForConfig(config, 0, options...)
	if err != nil {
		t.Fatal(err)
	}
	return factory
}

// What the informers hold is what client-go's client reads.
func TestForConfig(t *testing.T) {
	_, config := serve(t)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := forConfig(t, config, informers.WithNamespace("north"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app!=z" }))
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	if _, ours := cache.ReplicaOf(pods.Informer()); !ours {
		t.Errorf("the informer is %T", pods.Informer())
	}
	nodes.Informer()
	started(t, factory)

	list, err := client.CoreV1().Pods("north").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		want := &list.Items[i]
		got, err := pods.Lister().Pods(want.Namespace).Get(want.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if all, err := pods.Lister().List(labels.Everything()); len(all) != 30 || err != nil {
		t.Errorf("%d pods of one namespace, %v", len(all), err)
	}
	if all, err := nodes.Lister().List(labels.Everything()); len(all) != 1 || err != nil {
		t.Errorf("%d nodes, which have no namespace, %v", len(all), err)
	}
}

// A transform may write anywhere into its object, and no other object notices.
func TestForConfigTransform(t *testing.T) {
	_, config := serve(t)
	factory := forConfig(t, config, informers.WithTransform(func(o any) (any, error) {
		if p, ok := o.(*corev1.Pod); ok && p.Name == "a7" {
			p.Spec.Containers[0].Env[0].Value = "shallow"
		}
		return o, nil
	}))
	pods := factory.Core().V1().Pods()
	pods.Informer()
	started(t, factory)
	all, err := pods.Lister().List(labels.Everything())
	if err != nil || len(all) != 60 {
		t.Fatalf("%d pods, %v", len(all), err)
	}
	for _, p := range all {
		want := "deep"
		if p.Name == "a7" {
			want = "shallow"
		}
		if got := p.Spec.Containers[0].Env[0].Value; got != want {
			t.Errorf("%s/%s is %s, not %s", p.Namespace, p.Name, got, want)
		}
	}
}

// Label maps belong to their object; containers are common to all that have the
// same.
func TestForConfigShares(t *testing.T) {
	_, config := serve(t)
	factory := forConfig(t, config)
	pods := factory.Core().V1().Pods()
	pods.Informer()
	started(t, factory)
	one, err := pods.Lister().Pods("north").Get("a1")
	if err != nil {
		t.Fatal(err)
	}
	two, err := pods.Lister().Pods("north").Get("a2")
	if err != nil {
		t.Fatal(err)
	}
	if &one.Spec.Containers[0] != &two.Spec.Containers[0] {
		t.Error("equal containers are held twice")
	}
	one.Labels["mine"] = "yes"
	if two.Labels["mine"] != "" {
		t.Error("a label of one pod is seen on another")
	}
}
