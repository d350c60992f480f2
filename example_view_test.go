package tarn_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/memory/query"
)

// cluster is an API server with two nodes and a pod on the first, copied by two
// replicas.
func cluster() (client kubernetes.Interface, pods *tarn.Replica[*corev1.Pod], nodes *tarn.Replica[*corev1.Node], end func()) {
	server := apiserver.New(apiserver.Options{})
	for name, zone := range map[string]string{"node-1": "north", "node-2": "south"} {
		if err := server.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}); err != nil {
			log.Fatal(err)
		}
	}
	if err := server.Put(podOn("web-0", "node-1")); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	pods, err := kube.Reflect[*corev1.Pod](ctx, server.Config())
	if err != nil {
		log.Fatal(err)
	}
	nodes, err = kube.Reflect[*corev1.Node](ctx, server.Config())
	if err != nil {
		log.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(server.Config()), pods, nodes, func() {
		stop()
		<-pods.Done()
		<-nodes.Done()
		server.Close()
	}
}

func podOn(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "shop/web"}}
	return pod
}

// A view over pods and nodes that shows what was just written to both.
func ExampleView() {
	client, pods, nodes, end := cluster()
	defer end()
	ctx := context.Background()

	pod, err := client.CoreV1().Pods("shop").Create(ctx, podOn("web-1", "node-2"), metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "node-2", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	node.Labels["zone"] = "west"
	if node, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		log.Fatal(err)
	}

	view, err := tarn.NewView(ctx,
		pods.AtLeast(tarn.Version(pod.ResourceVersion)),
		nodes.AtLeast(tarn.Version(node.ResourceVersion)))
	if err != nil {
		log.Fatal(err) // says which replica did not get there, and why
	}
	defer view.Close()

	podsThen, err := pods.In(view)
	if err != nil {
		log.Fatal(err)
	}
	nodesThen, err := nodes.In(view)
	if err != nil {
		log.Fatal(err)
	}
	for key, pod := range podsThen.All() { // whatever is written meanwhile
		node, _ := nodesThen.Get(tarn.Key(pod.Spec.NodeName))
		fmt.Println(key, "runs in the", node.Labels["zone"])
	}
	// Output:
	// shop/web-0 runs in the north
	// shop/web-1 runs in the west
}

// An index over a replica, added while it runs.
func ExampleIndexBy() {
	_, pods, _, end := cluster()
	defer end()
	if err := pods.WaitSynced(context.Background()); err != nil {
		log.Fatal(err)
	}

	byNode := tarn.IndexBy(pods, func(p *corev1.Pod) string { return p.Spec.NodeName })
	for pod := range byNode.Get("node-1") {
		fmt.Println(pod.Name)
	}
	// Output: web-0
}

// The store of a replica answers queries.
func ExampleStoreAs() {
	_, pods, _, end := cluster()
	defer end()
	if err := pods.WaitSynced(context.Background()); err != nil {
		log.Fatal(err)
	}

	store, ok := tarn.StoreAs[*memory.Store[*corev1.Pod]](pods) // the same as memory.Of(pods)
	if !ok {
		log.Fatal("the replica has another store")
	}
	found, err := store.Select(query.Where(query.Field("spec.containers[*].image").HasPrefix("shop/")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Keys)
	// Output: [shop/web-0]
}
