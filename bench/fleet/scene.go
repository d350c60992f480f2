package main

import (
	"fmt"
	"hash/fnv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/bench/podset"
)

// placed is an object in a cluster.
type placed[T any] struct {
	key    tarn.Key
	object T
}

// scene is a fleet: real pods, and what the questions ask about beside them, made to fit.
type scene struct {
	pods        []placed[*corev1.Pod]
	nodes       []placed[*corev1.Node]
	sets        []placed[*appsv1.ReplicaSet]
	deployments []placed[*appsv1.Deployment]
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%d", i) }

// newScene divides the pods of a set among the clusters, those of an owner into one. Each
// cluster has the nodes that its pods are on, under names of its own; each ReplicaSet has a
// Deployment.
func newScene(set *podset.Set) (*scene, error) {
	s, known := &scene{}, map[tarn.Key]bool{}
	for _, raw := range set.Pods {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(raw); err != nil {
			return nil, err
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		uid := pod.UID
		if owner != nil {
			uid = owner.UID
		}
		h := fnv.New32a()
		h.Write([]byte(uid))
		cluster := clusterName(int(h.Sum32()) % *clusters)
		if pod.Spec.NodeName != "" {
			pod.Spec.NodeName = cluster + "-" + pod.Spec.NodeName
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName, UID: types.UID(pod.Spec.NodeName), ResourceVersion: "1"}}
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
			add(&s.nodes, known, cluster+"/", node, node.Name)
		}
		if owner != nil && owner.Kind == "ReplicaSet" {
			s.addOwners(known, cluster+"/"+pod.Namespace+"/", pod.Namespace, owner)
		}
		s.pods = append(s.pods, placed[*corev1.Pod]{tarn.Key(cluster + "/" + pod.Namespace + "/" + pod.Name), pod})
	}
	return s, nil
}

func (s *scene) addOwners(known map[tarn.Key]bool, prefix, namespace string, owner *metav1.OwnerReference) {
	name := owner.Name
	if cut := strings.LastIndexByte(name, '-'); cut > 0 {
		name = name[:cut]
	}
	uid := types.UID(prefix + name)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, ResourceVersion: "1"}}
	deployment.Spec.Replicas = new(int32(1))
	deployment.Status.AvailableReplicas = int32(len(owner.UID)) % 2
	add(&s.deployments, known, prefix+"deployments ", deployment, name)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: owner.Name, UID: owner.UID, ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: uid, Controller: new(true)}},
	}}
	add(&s.sets, known, prefix+"sets ", set, owner.Name)
}

func add[T any](to *[]placed[T], known map[tarn.Key]bool, prefix string, object T, name string) {
	key := tarn.Key(prefix + name)
	if known[key] {
		return
	}
	known[key] = true
	plain := strings.NewReplacer("deployments ", "", "sets ", "").Replace(prefix)
	*to = append(*to, placed[T]{tarn.Key(plain + name), object})
}
