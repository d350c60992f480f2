package podset

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Update is a pod's next state.
type Update struct {
	Key     Key
	Version int
	Pod     []byte
}

// Updates returns n status updates, as kubelets send them when containers are
// restarted and become ready again. They go through the set in leaps, because
// what happens on nodes does not happen one ReplicaSet after the other.
func (s *Set) Updates(n int) ([]Update, error) {
	updates := make([]Update, n)
	for i := range updates {
		at := stride(i%len(s.Pods), len(s.Pods))
		u := Update{Key: s.Keys[at], Version: s.Version + 1 + i}
		var pod corev1.Pod
		if err := pod.Unmarshal(s.Pods[at]); err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", u.Key.Namespace, u.Key.Name, err)
		}
		pod.ResourceVersion = strconv.Itoa(u.Version)
		restart(&pod, 1+i/len(s.Pods))
		var err error
		if u.Pod, err = pod.Marshal(); err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", u.Key.Namespace, u.Key.Name, err)
		}
		updates[i] = u
	}
	return updates, nil
}

// restart has the pod's first container restarted for the nth time.
func restart(pod *corev1.Pod, nth int) {
	at := metav1.NewTime(pod.CreationTimestamp.Add(time.Duration(nth) * time.Hour))
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; c.Type {
		case corev1.PodReady, corev1.ContainersReady:
			c.LastTransitionTime = at
		}
	}
	if len(pod.Status.ContainerStatuses) > 0 {
		status := &pod.Status.ContainerStatuses[0]
		status.RestartCount += int32(nth)
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", StartedAt: pod.CreationTimestamp, FinishedAt: at,
			ContainerID: status.ContainerID,
		}
		status.ContainerID = fmt.Sprintf("containerd://%032x%s", nth, pod.UID)
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
	}
	for i := range pod.ManagedFields {
		if m := &pod.ManagedFields[i]; m.Subresource == "status" {
			m.Time = &at
		}
	}
}
