package columns

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// computedColumns holds the columns that are not the value of one field. They need typed
// objects.
func computedColumns(r schema.GroupResource) []column {
	switch r {
	case core("pods"):
		return []column{
			ofPod("status", "TEXT", func(p *corev1.Pod) any { return podStatus(p) }),
			ofPod("ready", "INTEGER", func(p *corev1.Pod) any { return condition(p, corev1.PodReady) }).index(),
			ofPod("containers", "INTEGER", func(p *corev1.Pod) any { return int64(len(p.Spec.Containers)) }),
			ofPod("ready_containers", "INTEGER", func(p *corev1.Pod) any {
				n := int64(0)
				for _, s := range p.Status.ContainerStatuses {
					if s.Ready {
						n++
					}
				}
				return n
			}),
			ofPod("restarts", "INTEGER", func(p *corev1.Pod) any {
				n := int64(0)
				for _, s := range p.Status.ContainerStatuses {
					n += int64(s.RestartCount)
				}
				return n
			}),
			ofPod("images", "JSON", func(p *corev1.Pod) any { return images(p) }),
			ofPod("cpu_request", "REAL", func(p *corev1.Pod) any { return requests(p, corev1.ResourceCPU) }),
			ofPod("memory_request", "REAL", func(p *corev1.Pod) any { return requests(p, corev1.ResourceMemory) }),
		}
	case core("nodes"):
		return []column{
			ofNode("ready", "INTEGER", func(n *corev1.Node) any {
				for _, c := range n.Status.Conditions {
					if c.Type == corev1.NodeReady {
						return c.Status == corev1.ConditionTrue
					}
				}
				return nil
			}),
			ofNode("roles", "TEXT", func(n *corev1.Node) any { return roles(n) }),
			ofNode("internal_ip", "TEXT", func(n *corev1.Node) any {
				for _, a := range n.Status.Addresses {
					if a.Type == corev1.NodeInternalIP {
						return a.Address
					}
				}
				return nil
			}),
			ofNode("cpu_capacity", "REAL", func(n *corev1.Node) any { return amount(n.Status.Capacity, corev1.ResourceCPU) }),
			ofNode("memory_capacity", "REAL", func(n *corev1.Node) any { return amount(n.Status.Capacity, corev1.ResourceMemory) }),
			ofNode("cpu_allocatable", "REAL", func(n *corev1.Node) any { return amount(n.Status.Allocatable, corev1.ResourceCPU) }),
			ofNode("memory_allocatable", "REAL", func(n *corev1.Node) any { return amount(n.Status.Allocatable, corev1.ResourceMemory) }),
			ofNode("pods_allocatable", "REAL", func(n *corev1.Node) any { return amount(n.Status.Allocatable, corev1.ResourcePods) }),
		}
	}
	return nil
}

func fromTyped(name, kind string, read func(o metav1.Object) any) column {
	c := computed(name, kind, read)
	c.computed = true
	return c
}

func ofPod(name, kind string, read func(*corev1.Pod) any) column {
	return fromTyped(name, kind, func(o metav1.Object) any {
		if p, ok := o.(*corev1.Pod); ok {
			return read(p)
		}
		return nil
	})
}

func ofNode(name, kind string, read func(*corev1.Node) any) column {
	return fromTyped(name, kind, func(o metav1.Object) any {
		if n, ok := o.(*corev1.Node); ok {
			return read(n)
		}
		return nil
	})
}

// images lists the images of all containers.
func images(p *corev1.Pod) any {
	names := make([]string, 0, len(p.Spec.Containers))
	for _, c := range p.Spec.Containers {
		names = append(names, c.Image)
	}
	raw, _ := json.Marshal(names) // strings can be written
	return JSON(raw)
}

func condition(p *corev1.Pod, t corev1.PodConditionType) any {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podStatus is the status of a pod as kubectl shows it: the reason why a container waits
// or terminated has precedence over the phase.
func podStatus(p *corev1.Pod) string {
	status := string(p.Status.Phase)
	if p.Status.Reason != "" {
		status = p.Status.Reason
	}
	starting := false
	for _, s := range p.Status.InitContainerStatuses {
		if reason := troubleOf(s); reason != "" && reason != "Completed" && !starting {
			status, starting = "Init:"+reason, true
		}
	}
	if !starting {
		for _, s := range p.Status.ContainerStatuses {
			if reason := troubleOf(s); reason != "" {
				status = reason
			}
		}
	}
	if p.DeletionTimestamp != nil {
		status = "Terminating"
	}
	return status
}

// troubleOf is why a container does not run, empty if it does.
func troubleOf(s corev1.ContainerStatus) string {
	switch {
	case s.State.Waiting != nil:
		return s.State.Waiting.Reason
	case s.State.Terminated != nil && s.State.Terminated.Reason != "":
		return s.State.Terminated.Reason
	case s.State.Terminated != nil:
		return "Error"
	}
	return ""
}

// requests is what the scheduler counts: the sum of all containers, or the largest init
// container if that is more, plus the overhead.
func requests(p *corev1.Pod, name corev1.ResourceName) any {
	running, starting := 0.0, 0.0
	for _, c := range p.Spec.Containers {
		running += float(c.Resources.Requests[name])
	}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running += float(c.Resources.Requests[name])
			continue
		}
		starting = max(starting, float(c.Resources.Requests[name]))
	}
	return max(running, starting) + float(p.Spec.Overhead[name])
}

func amount(list corev1.ResourceList, name corev1.ResourceName) any {
	q, ok := list[name]
	if !ok {
		return nil
	}
	return float(q)
}

func float(q resource.Quantity) float64 { return q.AsApproximateFloat64() }

// roles returns the roles of a node, from its labels.
func roles(n *corev1.Node) any {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(n.Labels)) {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			all = append(all, role)
		}
	}
	return text(strings.Join(all, ","))
}
