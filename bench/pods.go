package main

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// firstVersion has as many digits as any version that a scenario comes to, so
// that versions compare as strings.
const firstVersion = 10_000_000

func version(n int) string { return strconv.Itoa(firstVersion + n) }

// podShape says how much a pod carries. The parts are those that make real pods
// large: containers with their environment and status, and managed fields.
type podShape struct {
	containers, env, managers int
}

var (
	// smallPod is about 1.6 KB on the wire.
	smallPod = podShape{containers: 1, env: 4, managers: 1}
	// largePod is about 8 KB on the heap.
	largePod = podShape{containers: 2, env: 6, managers: 1}
)

// newPod builds the i-th pod as a decoder would: nothing in it is shared with
// any other pod, or with the same pod built before. Only i decides its content.
func newPod(shape podShape, i int) *corev1.Pod {
	app := fmt.Sprintf("app-%03d", i/20)
	set := fmt.Sprintf("%s-%08x", app, uint32(i/20)*2654435761)
	created := metav1.NewTime(time.Unix(1_760_000_000+int64(i), 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         fmt.Sprintf("team-%02d", i%50),
			Name:              fmt.Sprintf("%s-%05d", set, i),
			GenerateName:      set + "-",
			UID:               types.UID(fmt.Sprintf("9c1f6a52-0000-4000-8000-%012x", i)),
			ResourceVersion:   version(i),
			CreationTimestamp: created,
			Labels:            map[string]string{"app": app, "pod-template-hash": set, "tier": fmt.Sprintf("tier-%d", i%3)},
			Annotations:       map[string]string{"example.org/config-hash": fmt.Sprintf("%064x", i/20)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set,
				UID: types.UID(fmt.Sprintf("5d0a7b33-0000-4000-8000-%012x", i/20)), Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:                      fmt.Sprintf("node-%03d", i%200),
			ServiceAccountName:            app,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			DNSPolicy:                     corev1.DNSClusterFirst,
			SchedulerName:                 corev1.DefaultSchedulerName,
			TerminationGracePeriodSeconds: new(int64(30)),
			Volumes: []corev1.Volume{{
				Name:         "config",
				VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}},
			}},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: corev1.PodStatus{
			Phase:     corev1.PodRunning,
			HostIP:    fmt.Sprintf("10.0.%d.%d", i/200%200, i%200),
			PodIP:     fmt.Sprintf("10.1.%d.%d", i/250%250, i%250),
			StartTime: &created,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: created},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: created},
			},
		},
	}
	for c := range shape.containers {
		addContainer(pod, shape, app, c)
	}
	for m := range shape.managers {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprintf("controller-%d", m), Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1", FieldsType: "FieldsV1", Time: new(created),
			FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"%s-%d\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}`, app, m)),
		})
	}
	return pod
}

func addContainer(pod *corev1.Pod, shape podShape, app string, c int) {
	name := fmt.Sprintf("%s-%d", app, c)
	image := "registry.example.org/team/" + name + ":v1.2.3"
	container := corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/bin/" + app, "--listen=:8080"},
		Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}},
		VolumeMounts:           []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + app, ReadOnly: true}},
		TerminationMessagePath: corev1.TerminationMessagePathDefault,
	}
	for e := range shape.env {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%02d", e), Value: fmt.Sprintf("value %d of %s", e, app)})
	}
	pod.Spec.Containers = append(pod.Spec.Containers, container)
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: name, Image: image, ImageID: fmt.Sprintf("registry.example.org/team/%s@sha256:%064x", name, c),
		ContainerID: fmt.Sprintf("containerd://%064s", pod.UID), Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}},
	})
}

// updated is the pod's next state: another version and another condition. It
// shares what has not changed, so that it costs the least that any update can;
// a decoder would spend several times as much.
func updated(pod *corev1.Pod, n int) *corev1.Pod {
	next := *pod
	next.ResourceVersion = version(n)
	next.Status.Conditions = []corev1.PodCondition{pod.Status.Conditions[0], pod.Status.Conditions[1]}
	next.Status.Conditions[1].LastTransitionTime.Time = pod.CreationTimestamp.Add(time.Duration(n) * time.Second)
	return &next
}
