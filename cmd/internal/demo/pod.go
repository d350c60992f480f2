package demo

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podFinalizer is the finalizer of every pod. It simulates the grace period:
// without it the API server would remove a deleted pod at once, and nobody would
// see it terminate.
const podFinalizer = "demo.tarn.dev/kubelet"

// pod goes through these states, beginning when its ReplicaSet creates it:
//
//	created → bound → creating → running → ready
//	         ↑        ↓ ↑        ↓ ↑      ↓
//	      no node   no image   crashing ←─┘
//
// and from each of them to terminating and removed. Each step plans the next one.
// A new epoch interrupts a pod: it cancels the planned step.
type pod struct {
	w           *Workload
	set         *replicaSet
	object      *corev1.Pod
	node        *node
	ready       bool
	terminating bool
	epoch       int
	// crashes is how many more times it crashes before it stays up.
	crashes int
}

func (p *pod) after(d time.Duration, do func()) {
	epoch := p.epoch
	p.w.queue.after(d, func() {
		if p.epoch == epoch {
			do()
		}
	})
}

func (p *pod) afterBetween(least, most time.Duration, do func()) {
	p.after(p.w.within(least, most), do)
}

func (p *pod) interrupt() { p.epoch++ }

func (p *pod) write() { p.w.put(p.object) }

// newPod makes a pod of a set, without writing it.
func (s *replicaSet) newPod() *pod {
	w := s.app.w
	template := s.object.Spec.Template.DeepCopy()
	object := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	object.Namespace, object.GenerateName = s.object.Namespace, s.object.Name+"-"
	object.Name = object.GenerateName + w.suffix(5)
	object.OwnerReferences = ownedBy(s.object, appsVersion, "ReplicaSet")
	object.Finalizers = []string{podFinalizer}
	object.Status.Phase = corev1.PodPending
	p := &pod{w: w, set: s, object: object}
	s.pods = append(s.pods, p)
	return p
}

// create writes the new pod, and plans its binding.
func (p *pod) create() {
	p.w.create(p.object)
	p.w.event(p.set.object, "ReplicaSet", corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+p.object.Name, "replicaset-controller")
	p.afterBetween(20*time.Millisecond, 200*time.Millisecond, p.bind)
}

func (p *pod) bind() {
	if !p.assignNode() {
		p.setCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "no node is ready and has room")
		p.write()
		p.warningEvent("FailedScheduling", "no node is ready and has room", "default-scheduler")
		p.afterBetween(2*time.Second, 4*time.Second, p.bind)
		return
	}
	p.write()
	p.normalEvent("Scheduled", fmt.Sprintf("Successfully assigned %s/%s to %s", p.object.Namespace, p.object.Name, p.node.name()), "default-scheduler")
	p.afterBetween(50*time.Millisecond, 300*time.Millisecond, p.admit)
}

// assignNode gives the pod a node, if one has room.
func (p *pod) assignNode() bool {
	p.node = p.w.freeNode()
	if p.node == nil {
		return false
	}
	p.node.pods = append(p.node.pods, p)
	p.object.Spec.NodeName = p.node.name()
	p.setCondition(corev1.PodScheduled, corev1.ConditionTrue, "", "")
	return true
}

// admit is the first step on the node.
func (p *pod) admit() {
	p.setAccepted()
	p.write()
	p.pull()
}

func (p *pod) image() string { return p.object.Spec.Containers[0].Image }

// pull pulls the image. Now and then it fails although the image exists.
func (p *pod) pull() {
	if p.set.app.brokenImage == p.image() || p.w.oneIn(60) {
		p.afterBetween(time.Second, 2*time.Second, p.pullFailed)
		return
	}
	p.afterBetween(300*time.Millisecond, 4*time.Second, func() {
		p.normalEvent("Pulled", fmt.Sprintf("Successfully pulled image %q", p.image()), "kubelet")
		p.run()
	})
}

func (p *pod) pullFailed() {
	problem := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference: not found", p.image())
	p.setWaiting("ErrImagePull", problem)
	p.write()
	p.warningEvent("Failed", problem, "kubelet")
	p.afterBetween(2*time.Second, 3*time.Second, func() {
		p.setWaiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", p.image()))
		p.write()
		p.warningEvent("BackOff", fmt.Sprintf("Back-off pulling image %q", p.image()), "kubelet")
		p.afterBetween(5*time.Second, 9*time.Second, p.pull)
	})
}

func (p *pod) run() {
	p.setRunning()
	p.write()
	p.normalEvent("Started", "Started container "+p.mainName(), "kubelet")
	if p.crashes > 0 {
		p.afterBetween(500*time.Millisecond, 3*time.Second, p.crash)
		return
	}
	p.afterBetween(time.Second, 4*time.Second, p.becomeReady)
}

func (p *pod) becomeReady() {
	p.setReady(true)
	p.write()
	p.set.app.enqueue()
}

func (p *pod) crash() {
	p.crashes = max(0, p.crashes-1)
	p.setCrashed(pick(p.w.random, []int32{1, 2, 137}))
	p.write()
	p.set.app.enqueue()
	p.warningEvent("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", p.mainName(), p.object.Name), "kubelet")
	p.after(p.backOff(), p.run)
}

// backOff is shorter than a kubelet's, so that the demonstration shows it.
func (p *pod) backOff() time.Duration {
	restarts := p.object.Status.ContainerStatuses[0].RestartCount
	return min(2*time.Second<<min(restarts, 4), 16*time.Second)
}

// terminate deletes the pod. Its node removes it after a while; if the node is
// down, the pod stays until the node is back.
func (p *pod) terminate() {
	p.interrupt()
	p.terminating = true
	p.w.delete(p.object)
	if p.node == nil {
		p.after(0, p.remove)
		return
	}
	p.normalEvent("Killing", "Stopping container "+p.mainName(), "kubelet")
	if p.node.up {
		p.afterBetween(time.Second, 4*time.Second, p.remove)
	}
}

func (p *pod) remove() {
	p.object.Finalizers = nil
	p.write()
	p.untrack()
}

// untrack removes the pod from its ReplicaSet and node.
func (p *pod) untrack() {
	p.interrupt()
	this := func(other *pod) bool { return other == p }
	p.set.pods = slices.DeleteFunc(p.set.pods, this)
	if p.node != nil {
		p.node.pods = slices.DeleteFunc(p.node.pods, this)
	}
	p.set.app.enqueue()
}

func (p *pod) normalEvent(reason, message, source string) {
	p.w.event(p.object, "Pod", corev1.EventTypeNormal, reason, message, source)
}

func (p *pod) warningEvent(reason, message, source string) {
	p.w.event(p.object, "Pod", corev1.EventTypeWarning, reason, message, source)
}

// createRunning creates the pod in state running and ready, for the initial
// cluster.
func (p *pod) createRunning() bool {
	if !p.assignNode() {
		return false
	}
	p.setAccepted()
	p.setRunning()
	p.setReady(true)
	p.w.create(p.object)
	return true
}
