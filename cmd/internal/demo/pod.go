package demo

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// keeper is the finalizer of every pod. It stands for the grace that a pod is
// given: the API server would let a deleted pod go at once, and nobody would see
// it terminate.
const keeper = "demo.tarn.dev/kubelet"

// pod goes its way from the moment its ReplicaSet makes it:
//
//	made → bound → creating → running → ready
//	         ↑        ↓ ↑        ↓ ↑      ↓
//	      no node   no image   crashing ←─┘
//
// and from anywhere to leaving and gone. Each step plans the next one. To
// interrupt a pod, move it to another epoch: that cancels what it had planned.
type pod struct {
	w       *Workload
	set     *replicaSet
	object  *corev1.Pod
	node    *node
	ready   bool
	leaving bool
	epoch   int
	// crashes is how often it will crash yet before it stays up.
	crashes int
}

func (p *pod) after(d time.Duration, do func()) {
	epoch := p.epoch
	p.w.agenda.after(d, func() {
		if p.epoch == epoch {
			do()
		}
	})
}

func (p *pod) soon(least, most time.Duration, do func()) { p.after(p.w.within(least, most), do) }

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
	object.Finalizers = []string{keeper}
	object.Status.Phase = corev1.PodPending
	p := &pod{w: w, set: s, object: object}
	s.pods = append(s.pods, p)
	return p
}

// begin is how a pod comes into the world.
func (p *pod) begin() {
	p.w.create(p.object)
	p.w.event(p.set.object, "ReplicaSet", corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+p.object.Name, "replicaset-controller")
	p.soon(20*time.Millisecond, 200*time.Millisecond, p.bind)
}

func (p *pod) bind() {
	if !p.place() {
		p.setCondition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "no node is ready and has room")
		p.write()
		p.warn("FailedScheduling", "no node is ready and has room", "default-scheduler")
		p.soon(2*time.Second, 4*time.Second, p.bind)
		return
	}
	p.write()
	p.tell("Scheduled", fmt.Sprintf("Successfully assigned %s/%s to %s", p.object.Namespace, p.object.Name, p.node.name()), "default-scheduler")
	p.soon(50*time.Millisecond, 300*time.Millisecond, p.enter)
}

// place gives the pod a node, if one is to be had.
func (p *pod) place() bool {
	p.node = p.w.freeNode()
	if p.node == nil {
		return false
	}
	p.node.pods = append(p.node.pods, p)
	p.object.Spec.NodeName = p.node.name()
	p.setCondition(corev1.PodScheduled, corev1.ConditionTrue, "", "")
	return true
}

// enter is when the pod's node has seen it.
func (p *pod) enter() {
	p.accept()
	p.write()
	p.pull()
}

func (p *pod) image() string { return p.object.Spec.Containers[0].Image }

// pull gets the image, which now and then fails although it is there.
func (p *pod) pull() {
	if p.set.app.brokenImage == p.image() || p.w.oneIn(60) {
		p.soon(time.Second, 2*time.Second, p.pullFailed)
		return
	}
	p.soon(300*time.Millisecond, 4*time.Second, func() {
		p.tell("Pulled", fmt.Sprintf("Successfully pulled image %q", p.image()), "kubelet")
		p.run()
	})
}

func (p *pod) pullFailed() {
	problem := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference: not found", p.image())
	p.waitFor("ErrImagePull", problem)
	p.write()
	p.warn("Failed", problem, "kubelet")
	p.soon(2*time.Second, 3*time.Second, func() {
		p.waitFor("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", p.image()))
		p.write()
		p.warn("BackOff", fmt.Sprintf("Back-off pulling image %q", p.image()), "kubelet")
		p.soon(5*time.Second, 9*time.Second, p.pull)
	})
}

func (p *pod) run() {
	p.runs()
	p.write()
	p.tell("Started", "Started container "+p.mainName(), "kubelet")
	if p.crashes > 0 {
		p.soon(500*time.Millisecond, 3*time.Second, p.crash)
		return
	}
	p.soon(time.Second, 4*time.Second, p.becomeReady)
}

func (p *pod) becomeReady() {
	p.setReady(true)
	p.write()
	p.set.app.wake()
}

func (p *pod) crash() {
	p.crashes = max(0, p.crashes-1)
	p.died(pick(p.w.chance, []int32{1, 2, 137}))
	p.write()
	p.set.app.wake()
	p.warn("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", p.mainName(), p.object.Name), "kubelet")
	p.after(p.backOff(), p.run)
}

// backOff is shorter than a kubelet's, so that the demonstration shows it.
func (p *pod) backOff() time.Duration {
	restarts := p.object.Status.ContainerStatuses[0].RestartCount
	return min(2*time.Second<<min(restarts, 4), 16*time.Second)
}

// leave deletes the pod. It is gone when its node has stopped it, and while that
// does not answer, it stays.
func (p *pod) leave() {
	p.interrupt()
	p.leaving = true
	p.w.delete(p.object)
	if p.node == nil {
		p.after(0, p.gone)
		return
	}
	p.tell("Killing", "Stopping container "+p.mainName(), "kubelet")
	if p.node.up {
		p.soon(time.Second, 4*time.Second, p.gone)
	}
}

func (p *pod) gone() {
	p.object.Finalizers = nil
	p.write()
	p.forget()
}

// forget takes the pod out of the books.
func (p *pod) forget() {
	p.interrupt()
	this := func(other *pod) bool { return other == p }
	p.set.pods = slices.DeleteFunc(p.set.pods, this)
	if p.node != nil {
		p.node.pods = slices.DeleteFunc(p.node.pods, this)
	}
	p.set.app.wake()
}

func (p *pod) tell(reason, message, source string) {
	p.w.event(p.object, "Pod", corev1.EventTypeNormal, reason, message, source)
}

func (p *pod) warn(reason, message, source string) {
	p.w.event(p.object, "Pod", corev1.EventTypeWarning, reason, message, source)
}

// settle makes a pod that has long been up, for the beginning.
func (p *pod) settle() bool {
	if !p.place() {
		return false
	}
	p.accept()
	p.runs()
	p.setReady(true)
	p.w.create(p.object)
	return true
}
