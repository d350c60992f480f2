package questions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// lines are the answers that Go gives.
type lines []string

func (l *lines) add(cells ...any) {
	parts := make([]string, len(cells))
	for i, c := range cells {
		parts[i] = fmt.Sprint(c)
	}
	*l = append(*l, strings.Join(parts, ","))
}

func isReady(p *corev1.Pod) bool {
	return len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

func restarts(p *corev1.Pod) (n int) {
	for _, s := range p.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}

// Answers are those to the ten questions of docs/sql.md, computed from the objects. A value
// that is missing is empty.
func (s *Scene) Answers() map[string][]string {
	byName := func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(s.pods, byName)
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.deployments, func(a, b *appsv1.Deployment) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	setOf, sets := map[string]string{}, map[string]bool{}
	for _, r := range s.sets {
		setOf[string(r.OwnerReferences[0].UID)] = string(r.UID)
		sets[string(r.UID)] = true
	}
	all := map[string][]string{}
	var notReady, onNode, orphans, labelled lines
	type use struct {
		nodes      map[string]bool
		containers int
	}
	images, phases := map[string]*use{}, map[string]int{}
	type workload struct {
		namespace, kind, name string
		restarts              int
	}
	workloads := map[string]*workload{}
	for _, p := range s.pods {
		readyContainers := 0
		status := string(p.Status.Phase)
		for _, c := range p.Status.ContainerStatuses {
			if c.Ready {
				readyContainers++
			} else {
				status = "CrashLoopBackOff"
			}
		}
		if !isReady(p) && p.Status.Phase != corev1.PodSucceeded {
			notReady.add(p.Namespace, p.Name, status, fmt.Sprintf("%d/%d", readyContainers, len(p.Spec.Containers)), restarts(p), p.Spec.NodeName)
		}
		if p.Spec.NodeName == "node-3" {
			onNode.add(p.Namespace, p.Name, status, 0.25*float64(len(p.Spec.Containers)), 64*len(p.Spec.Containers))
		}
		for _, c := range p.Spec.Containers {
			if images[c.Image] == nil {
				images[c.Image] = &use{nodes: map[string]bool{}}
			}
			images[c.Image].nodes[p.Spec.NodeName] = true
			images[c.Image].containers++
		}
		phases[p.Namespace+","+string(p.Status.Phase)]++
		if p.Labels["app"] == "app-7" {
			labelled.add(p.Namespace, p.Name)
		}
		for _, o := range p.OwnerReferences {
			if !sets[string(o.UID)] {
				orphans.add(p.Namespace, p.Name, o.Kind, o.Name)
			}
			id := p.Namespace + string(o.UID)
			if workloads[id] == nil {
				workloads[id] = &workload{p.Namespace, o.Kind, o.Name, 0}
			}
			workloads[id].restarts += restarts(p)
		}
	}
	all["Which pods are not ready, and why?"] = notReady
	all["What runs on a node?"] = onNode
	all["What is left over from an owner that is gone?"] = orphans
	all["Which pods have a label?"] = labelled
	var imageLines, phaseLines, restartLines, owned, requested, wanting lines
	for image, u := range images {
		imageLines.add(image, len(u.nodes), u.containers)
	}
	slices.Sort(imageLines)
	for k, n := range phases {
		phaseLines.add(k, n)
	}
	slices.Sort(phaseLines)
	ranked := []*workload{}
	for _, w := range workloads {
		if w.restarts > 0 {
			ranked = append(ranked, w)
		}
	}
	slices.SortFunc(ranked, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(b.restarts, a.restarts), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, w := range ranked[:min(10, len(ranked))] {
		restartLines.add(w.namespace, w.kind, w.name, w.restarts)
	}
	for _, d := range s.deployments {
		n, ready := 0, 0
		for _, p := range s.pods {
			if len(p.OwnerReferences) > 0 && string(p.OwnerReferences[0].UID) == setOf[string(d.UID)] {
				n++
				if isReady(p) {
					ready++
				}
			}
		}
		if n == 0 {
			owned.add(d.Namespace, d.Name, 0, "")
		} else {
			owned.add(d.Namespace, d.Name, n, ready)
		}
		if d.Status.AvailableReplicas < *d.Spec.Replicas {
			wanting.add(d.Namespace, d.Name, *d.Spec.Replicas, d.Status.AvailableReplicas)
		}
	}
	for _, node := range s.nodes {
		n, cpu := 0, 0.0
		for _, p := range s.pods {
			if p.Spec.NodeName == node.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				n++
				cpu += 0.25 * float64(len(p.Spec.Containers))
			}
		}
		requested.add(node.Name, node.Status.Allocatable.Cpu().Value(), cpu, n)
	}
	all["Which images are in use, on how many nodes?"] = imageLines
	all["How many pods of which phase are in each namespace?"] = phaseLines
	all["Which workloads restart most?"] = restartLines
	all["Who owns what?"] = owned
	all["What is requested of each node, of what it has?"] = requested
	all["Which deployments do not have what they want?"] = wanting
	return all
}
