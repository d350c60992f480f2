package demo

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	tick = 50 * time.Millisecond
	// writesOfPod is about the number of writes that it takes to replace a pod,
	// Events and statuses included. It only decides which share of the rate are
	// disruptions and which are small changes, not the rate itself.
	writesOfPod = 14
	// disruptionShare is the share of disruptions.
	disruptionShare = 0.6
)

// budget limits the changes that the workload begins. It grows with time, and
// every write takes from it, also those that follow from earlier changes, so that
// in the long run there are as many writes as the rate says. Why not simply write
// at the rate: the consequences of a change, such as the rollout of a new image,
// have a duration of their own.
type budget struct {
	left float64
	// nextDisruption is the earliest time of the next disruption.
	nextDisruption time.Time
}

// tick makes changes, as far as the budget allows.
func (w *Workload) tick() {
	w.queue.after(tick, w.tick)
	rate := w.rate()
	if rate <= 0 {
		w.budget.left = 0
		return
	}
	w.budget.left = min(max(w.budget.left, -300*rate)+rate*tick.Seconds(), max(1, rate))
	if w.budget.left >= 0 && !w.queue.now.Before(w.budget.nextDisruption) {
		pods := w.disrupt()
		w.budget.nextDisruption = w.queue.now.Add(time.Duration(float64(1+pods) * writesOfPod / (disruptionShare * rate) * float64(time.Second)))
	}
	for w.budget.left >= 1 {
		w.smallChange()
	}
}

// disrupt makes a change that has consequences, and returns for about how many
// pods. It chooses apps without an unfinished change, and a node only while all
// nodes are up, so that most of the cluster always works.
func (w *Workload) disrupt() (pods int) {
	if len(w.apps) == 0 {
		return 0
	}
	a := pick(w.random, w.apps)
	if a.service == nil || a.deleted || !a.settled() { // apps of other users are left alone
		return 0
	}
	replicas := *a.deployment.Spec.Replicas
	switch choice := w.IntN(100); {
	case choice < 45:
		a.deploy()
		return int(replicas)
	case choice < 53:
		a.deployBroken()
		return int(replicas)
	case choice < 78:
		return w.rescale(a)
	case choice < 94 && replicas > 0:
		p := pick(w.random, a.current().pods)
		p.interrupt()
		p.crashes = w.between(1, 4)
		p.crash()
		return p.crashes
	case w.allNodesUp() && len(w.nodes) > 2:
		n := pick(w.random, w.nodes)
		n.fail()
		return len(n.pods)
	}
	return 0
}

// rescale sets a random size around the usual one.
func (w *Workload) rescale(a *app) (pods int) {
	before := *a.deployment.Spec.Replicas
	least, most := max(1, a.usualReplicas/2), max(2, a.usualReplicas+a.usualReplicas/2)
	replicas := int32(w.between(int(least), int(most)))
	a.scale(replicas)
	return int(max(replicas-before, before-replicas))
}

func (w *Workload) allNodesUp() bool {
	for _, n := range w.nodes {
		if !n.up {
			return false
		}
	}
	return true
}

// smallChange makes a change that has no or few consequences.
func (w *Workload) smallChange() {
	choice := w.IntN(100)
	if choice < 30 && len(w.databases) > 0 {
		w.operateDatabase(pick(w.random, w.databases))
		return
	}
	if len(w.apps) == 0 || choice < 45 {
		if n := pick(w.random, w.nodes); n.up {
			n.renewLease()
			return
		}
	}
	if len(w.apps) == 0 {
		w.budget.left-- // nothing is left to change
		return
	}
	a := pick(w.random, w.apps)
	p := a.anyReady()
	switch {
	case choice < 48 && p != nil:
		p.flap()
	case choice < 75 && p != nil:
		p.reportCPU()
	case choice < 90 && a.scaler != nil && !a.deleted:
		a.putLoad(int32(w.between(30, 90)))
	case a.config != nil:
		a.changeConfig()
	default:
		w.budget.left-- // an app of another user that is not ready
	}
}

// anyReady is one of the app's ready pods, if it has one.
func (a *app) anyReady() *pod {
	pods := a.current().pods
	if len(pods) == 0 {
		return nil
	}
	if p := pick(a.w.random, pods); p.ready && !p.terminating {
		return p
	}
	return nil
}

// operateDatabase does what the operator of a database would do.
func (w *Workload) operateDatabase(d *database) {
	switch {
	case w.oneIn(25):
		d.backUp()
	case w.oneIn(60):
		d.failOver()
	default:
		d.updateStatus()
	}
}

// changeConfig changes an app's settings.
func (a *app) changeConfig() {
	a.config.Data["feature.sampled"] = fmt.Sprint(a.w.between(1, 100))
	a.config.Data["cache.ttl"] = fmt.Sprintf("%ds", a.w.between(5, 600))
	a.w.put(a.config)
}

// flap makes a pod fail its readiness probe, and recover.
func (p *pod) flap() {
	p.interrupt()
	p.setReady(false)
	p.write()
	p.warningEvent("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet")
	p.set.app.enqueue()
	p.afterBetween(time.Second, 3*time.Second, p.becomeReady)
}

// reportCPU writes the CPU usage of a pod into an annotation, as some agents do.
func (p *pod) reportCPU() {
	metav1.SetMetaDataAnnotation(&p.object.ObjectMeta, "demo.tarn.dev/cpu", fmt.Sprintf("%dm", p.w.between(1, 999)))
	p.write()
}
