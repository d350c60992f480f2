package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// Nodes is on how many nodes pods are put: node-0, node-1, …
	Nodes = 10
	// kubeletWorkers is how many pods are bound and patched at once. More do not
	// help: the API server is busy with 32.
	kubeletWorkers = 32
)

// Kubelet does what scheduler and kubelets would: every pending pod is bound to
// a node, and its status says that it runs.
//
// It lists pending pods in a loop instead of watching. So it does not depend on
// the code under test, and recovers from every server failure in the next round.
type Kubelet struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	done   chan struct{}
}

// StartKubelet makes the nodes, and runs pods until it is stopped or the test
// ends.
func (e *Endpoint) StartKubelet() *Kubelet {
	e.t.Helper()
	for i := range Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		if _, err := e.admin.CoreV1().Nodes().Create(e.t.Context(), node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			e.t.Fatal(err)
		}
	}
	config := e.Config(AdminToken)
	config.Timeout = 30 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelet{client: client, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.run(ctx)
	}()
	e.t.Cleanup(k.Stop)
	return k
}

// Stop ends the kubelet and waits for it. It may be called more than once.
func (k *Kubelet) Stop() {
	k.cancel()
	<-k.done
}

func (k *Kubelet) run(ctx context.Context) {
	for ctx.Err() == nil {
		if k.round(ctx) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// round starts the pending pods and returns their number. A pod that fails, for
// example because the server is down, is pending again in the next round.
func (k *Kubelet) round(ctx context.Context) int {
	pending, err := k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending", ResourceVersion: "0"})
	if err != nil {
		return 0
	}
	pods := make(chan *corev1.Pod)
	var workers sync.WaitGroup
	for range kubeletWorkers {
		workers.Go(func() {
			for pod := range pods {
				_ = k.runPod(ctx, pod)
			}
		})
	}
	for i := range pending.Items {
		pods <- &pending.Items[i]
	}
	close(pods)
	workers.Wait()
	return len(pending.Items)
}

func (k *Kubelet) runPod(ctx context.Context, pod *corev1.Pod) error {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	if pod.Spec.NodeName == "" {
		err := pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeOf(pod.UID)},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": runningStatus(pod)})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// nodeOf spreads pods over the nodes; the same pod is always put on the same.
func nodeOf(uid types.UID) string {
	hash := fnv.New32a()
	hash.Write([]byte(uid))
	return nodeName(int(hash.Sum32() % Nodes))
}

// runningStatus is what a kubelet reports of a pod whose containers all run.
func runningStatus(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now().Rfc3339Copy()
	hash := fnv.New32a()
	hash.Write([]byte(pod.UID))
	address := hash.Sum32()
	ip := fmt.Sprintf("10.%d.%d.%d", address>>16&0xff, address>>8&0xff, address&0xff)
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		PodIP:     ip,
		PodIPs:    []corev1.PodIP{{IP: ip}},
		StartTime: &now,
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name:    container.Name,
			Image:   container.Image,
			Ready:   true,
			Started: new(true),
			State:   corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
