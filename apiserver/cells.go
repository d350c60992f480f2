package apiserver

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func readyContainers(pod *corev1.Pod) any {
	ready := 0
	for _, c := range pod.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers))
}

// podStatus is the phase, or the problem of a container, or that the pod is being deleted.
func podStatus(pod *corev1.Pod) any {
	status := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		status = pod.Status.Reason
	}
	for _, c := range slices.Backward(pod.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			status = c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.Reason != "":
			status = c.State.Terminated.Reason
		}
	}
	if pod.DeletionTimestamp != nil {
		status = "Terminating"
	}
	return status
}

func podRestarts(pod *corev1.Pod) any {
	restarts := 0
	for _, c := range pod.Status.ContainerStatuses {
		restarts += int(c.RestartCount)
	}
	return fmt.Sprint(restarts)
}

func nodeStatus(node *corev1.Node) any {
	status := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(node *corev1.Node) any {
	var roles []string
	for label := range node.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return orNone(strings.Join(roles, ","))
}

func servicePorts(service *corev1.Service) any {
	var ports []string
	for _, p := range service.Spec.Ports {
		text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			text = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		ports = append(ports, text)
	}
	return orNone(strings.Join(ports, ","))
}

func lastSeen(event *corev1.Event) metav1.Time {
	switch {
	case event.Series != nil:
		return metav1.NewTime(event.Series.LastObservedTime.Time)
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp
	}
	return metav1.NewTime(event.EventTime.Time)
}

func jobStatus(job *batchv1.Job) any {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			switch c.Type {
			case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuspended:
				return string(c.Type)
			}
		}
	}
	return "Running"
}

func ingressHosts(ingress *networkingv1.Ingress) any {
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	if len(hosts) == 0 {
		return "*"
	}
	return strings.Join(hosts, ",")
}
