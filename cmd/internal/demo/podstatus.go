package demo

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The status of a pod, as its node would report it.

// setCondition sets a condition and, if its status changes, the transition time.
func (p *pod) setCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	conditions := &p.object.Status.Conditions
	i := slices.IndexFunc(*conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		*conditions = append(*conditions, corev1.PodCondition{Type: kind})
		i = len(*conditions) - 1
	}
	c := &(*conditions)[i]
	if c.Status != status {
		c.LastTransitionTime = p.w.time()
	}
	c.Status, c.Reason, c.Message, c.ObservedGeneration = status, reason, message, 1
}

// setReady sets whether all containers are ready.
func (p *pod) setReady(ready bool) {
	p.ready = ready
	status, reason, message := corev1.ConditionTrue, "", ""
	if !ready {
		status, reason = corev1.ConditionFalse, "ContainersNotReady"
		message = fmt.Sprintf("containers with unready status: [%s]", p.mainName())
	}
	p.setCondition(corev1.PodReady, status, reason, message)
	p.setCondition(corev1.ContainersReady, status, reason, message)
	for i := range p.object.Status.ContainerStatuses {
		c := &p.object.Status.ContainerStatuses[i]
		c.Ready = ready || c.Name != p.mainName() && c.State.Running != nil
	}
}

func (p *pod) mainName() string { return p.object.Spec.Containers[0].Name }

// setAccepted sets what a kubelet first reports of a pod.
func (p *pod) setAccepted() {
	now := p.w.time()
	status := &p.object.Status
	status.HostIP, status.HostIPs = p.node.address, []corev1.HostIP{{IP: p.node.address}}
	status.StartTime, status.QOSClass, status.ObservedGeneration = &now, corev1.PodQOSBurstable, 1
	status.ContainerStatuses = nil
	for _, c := range p.object.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(false)})
	}
	p.setCondition(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", "")
	p.setCondition(corev1.PodInitialized, corev1.ConditionTrue, "", "")
	p.setWaiting("ContainerCreating", "")
	p.setReady(false)
}

// setWaiting sets the main container to waiting. Before the pod has run, all
// containers are.
func (p *pod) setWaiting(reason, message string) {
	for i := range p.object.Status.ContainerStatuses {
		c := &p.object.Status.ContainerStatuses[i]
		switch {
		case i == 0:
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
			c.Ready, c.Started = false, new(false)
		case p.object.Status.Phase == corev1.PodPending:
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		}
	}
}

// setRunning sets all containers to running. Those that ran already stay as they
// are.
func (p *pod) setRunning() {
	now := p.w.time()
	status := &p.object.Status
	status.Phase = corev1.PodRunning
	if status.PodIP == "" {
		status.PodIP = p.node.podAddress()
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	p.setCondition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", "")
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if c.State.Running != nil {
			continue
		}
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		c.Started = new(true)
		c.ContainerID = "containerd://" + p.w.hex(64)
		if c.ImageID == "" {
			c.ImageID = registry + "/sha256:" + digest(c.Image)
		}
	}
	p.setReady(false)
}

// setCrashed sets the main container to terminated and waiting for its restart.
func (p *pod) setCrashed(exitCode int32) {
	c := &p.object.Status.ContainerStatuses[0]
	ended := &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: "Error", FinishedAt: p.w.time(), ContainerID: c.ContainerID}
	if exitCode == 137 {
		ended.Reason = "OOMKilled"
	}
	if c.State.Running != nil {
		ended.StartedAt = c.State.Running.StartedAt
	}
	c.LastTerminationState = corev1.ContainerState{Terminated: ended}
	c.RestartCount++
	p.setWaiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		p.backOff(), c.Name, p.object.Name, p.object.Namespace, p.object.UID))
	p.setReady(false)
}

func (w *Workload) time() metav1.Time { return metav1.NewTime(w.queue.now).Rfc3339Copy() }
