package questions

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tarnproject/tarn/apiserver"
)

// A Scene is the objects of a small cluster.
type Scene struct {
	pods        []*corev1.Pod
	nodes       []*corev1.Node
	deployments []*appsv1.Deployment
	sets        []*appsv1.ReplicaSet
}

// Fill puts a random scene with n pods on a server, which accepts any namespace.
func Fill(ctx context.Context, server *apiserver.Server, n int) (*Scene, error) {
	dice := rand.New(rand.NewPCG(7, 7))
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		return nil, err
	}
	s := &Scene{}
	if err := putNodesAndDeployments(dice, server, n); err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s.nodes = pointers(nodes.Items)
	deployments, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s.deployments = pointers(deployments.Items)
	for _, d := range s.deployments {
		set := &appsv1.ReplicaSet{}
		set.TypeMeta, set.ObjectMeta = meta("ReplicaSet", d.Namespace, d.Name+"-x")
		set.OwnerReferences = ownedBy("Deployment", d.Name, string(d.UID))
		if err := server.Put(set); err != nil {
			return nil, err
		}
	}
	sets, err := client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s.sets = pointers(sets.Items)
	var all []runtime.Object
	for i := range n {
		all = append(all, randomPod(dice, i, s.sets[i%len(s.sets)]))
	}
	if err := server.Put(all...); err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s.pods = pointers(pods.Items)
	return s, nil
}

func pointers[T any](items []T) (all []*T) {
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

func putNodesAndDeployments(dice *rand.Rand, server *apiserver.Server, n int) error {
	for i := range 10 {
		o := &corev1.Node{}
		o.TypeMeta, o.ObjectMeta = meta("Node", "", "node-"+strconv.Itoa(i))
		o.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(strconv.Itoa(2 + i))}
		if err := server.Put(o); err != nil {
			return err
		}
	}
	for i := range max(n/20, 10) {
		d := &appsv1.Deployment{}
		d.TypeMeta, d.ObjectMeta = meta("Deployment", "team-"+strconv.Itoa(i%5), "app-"+strconv.Itoa(i))
		replicas := int32(dice.IntN(4))
		d.Spec.Replicas, d.Status.AvailableReplicas = &replicas, int32(dice.IntN(4))
		if err := server.Put(d); err != nil {
			return err
		}
	}
	return nil
}

func meta(kind, namespace, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
	group := "v1"
	if kind == "Deployment" || kind == "ReplicaSet" {
		group = "apps/v1"
	}
	return metav1.TypeMeta{APIVersion: group, Kind: kind}, metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}
}

func ownedBy(kind, name string, uid string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
}

func randomPod(dice *rand.Rand, i int, owner *appsv1.ReplicaSet) *corev1.Pod {
	p := &corev1.Pod{}
	p.TypeMeta, p.ObjectMeta = meta("Pod", owner.Namespace, fmt.Sprintf("%s-%d", owner.Name, i))
	p.Labels["app"] = strings.TrimSuffix(owner.Name, "-x")
	switch dice.IntN(10) {
	case 0: // nobody's
	case 1:
		p.OwnerReferences = ownedBy("ReplicaSet", "gone", fmt.Sprint("gone-", i))
	default:
		p.OwnerReferences = ownedBy("ReplicaSet", owner.Name, string(owner.UID))
	}
	p.Spec.NodeName = "node-" + strconv.Itoa(dice.IntN(10))
	phases := []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed}
	p.Status.Phase = phases[dice.IntN(len(phases))]
	for c := range 1 + dice.IntN(2) {
		name := "c" + strconv.Itoa(c)
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "image:" + strconv.Itoa(dice.IntN(5)),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}})
		s := corev1.ContainerStatus{Name: name, Ready: dice.IntN(3) > 0, RestartCount: int32(dice.IntN(3))}
		if !s.Ready {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
	}
	if ready := dice.IntN(3); ready > 0 {
		status := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue}[ready-1]
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	}
	return p
}
