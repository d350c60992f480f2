package demo

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	tick = 50 * time.Millisecond
	// writesOfPod is about what it takes to replace a pod by another, Events and
	// statuses included. It only decides how much of the rate is upheaval and
	// how much is small news, not how much there is in all.
	writesOfPod = 14
	// upheaval is that part.
	upheaval = 0.6
)

// budget is how many writes may be done on one's own accord. It grows with time
// and every write takes from it, also those that follow from earlier ones, so
// that in the long run there are as many as the rate says. Why not simply write
// at the rate: what follows from one change, a rollout from a new image, takes
// the time it takes.
type budget struct {
	left float64
	// calm is when there may be the next upheaval.
	calm time.Time
}

// tick makes news, as far as the budget goes.
func (w *Workload) tick() {
	w.agenda.after(tick, w.tick)
	rate := w.rate()
	if rate <= 0 {
		w.budget.left = 0
		return
	}
	w.budget.left = min(max(w.budget.left, -300*rate)+rate*tick.Seconds(), max(1, rate))
	if w.budget.left >= 0 && !w.agenda.now.Before(w.budget.calm) {
		pods := w.upset()
		w.budget.calm = w.agenda.now.Add(time.Duration(float64(1+pods) * writesOfPod / (upheaval * rate) * float64(time.Second)))
	}
	for w.budget.left >= 1 {
		w.chatter()
	}
}

// upset changes something that has consequences, and says for about how many
// pods. It picks apps that are at rest, and nodes while all others are up, so
// that there is always something that works.
func (w *Workload) upset() (pods int) {
	if len(w.apps) == 0 {
		return 0
	}
	a := pick(w.chance, w.apps)
	if a.service == nil || a.retired || !a.settled() { // what others made is left to them
		return 0
	}
	replicas := *a.deployment.Spec.Replicas
	switch dice := w.IntN(100); {
	case dice < 45:
		a.deploy()
		return int(replicas)
	case dice < 53:
		a.deployBroken()
		return int(replicas)
	case dice < 78:
		return w.rescale(a)
	case dice < 94 && replicas > 0:
		p := pick(w.chance, a.current().pods)
		p.interrupt()
		p.crashes = w.between(1, 4)
		p.crash()
		return p.crashes
	case w.allUp() && len(w.nodes) > 2:
		n := pick(w.chance, w.nodes)
		n.fail()
		return len(n.pods)
	}
	return 0
}

// rescale goes to somewhere around the usual size.
func (w *Workload) rescale(a *app) (pods int) {
	before := *a.deployment.Spec.Replicas
	least, most := max(1, a.usual/2), max(2, a.usual+a.usual/2)
	replicas := int32(w.between(int(least), int(most)))
	a.scale(replicas)
	return int(max(replicas-before, before-replicas))
}

func (w *Workload) allUp() bool {
	for _, n := range w.nodes {
		if !n.up {
			return false
		}
	}
	return true
}

// chatter changes something that has no consequences, or small ones.
func (w *Workload) chatter() {
	dice := w.IntN(100)
	if dice < 30 && len(w.databases) > 0 {
		w.operate(pick(w.chance, w.databases))
		return
	}
	if len(w.apps) == 0 || dice < 45 {
		if n := pick(w.chance, w.nodes); n.up {
			n.renew()
			return
		}
	}
	if len(w.apps) == 0 {
		w.budget.left-- // nothing is left to change
		return
	}
	a := pick(w.chance, w.apps)
	p := a.anyReady()
	switch {
	case dice < 48 && p != nil:
		p.flap()
	case dice < 75 && p != nil:
		p.measure()
	case dice < 90 && a.scaler != nil && !a.retired:
		a.putLoad(int32(w.between(30, 90)))
	case a.config != nil:
		a.retune()
	default:
		w.budget.left-- // somebody's app that is not ready
	}
}

// anyReady is one of the app's ready pods, if it has one.
func (a *app) anyReady() *pod {
	pods := a.current().pods
	if len(pods) == 0 {
		return nil
	}
	if p := pick(a.w.chance, pods); p.ready && !p.leaving {
		return p
	}
	return nil
}

// operate does one of the things that an operator of databases does.
func (w *Workload) operate(d *database) {
	switch {
	case w.oneIn(25):
		d.backUp()
	case w.oneIn(60):
		d.failOver()
	default:
		d.beat()
	}
}

// retune changes an app's settings.
func (a *app) retune() {
	a.config.Data["feature.sampled"] = fmt.Sprint(a.w.between(1, 100))
	a.config.Data["cache.ttl"] = fmt.Sprintf("%ds", a.w.between(5, 600))
	a.w.put(a.config)
}

// flap makes a pod fail its readiness probe, and recover.
func (p *pod) flap() {
	p.interrupt()
	p.setReady(false)
	p.write()
	p.warn("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet")
	p.set.app.wake()
	p.soon(time.Second, 3*time.Second, p.becomeReady)
}

// measure notes on a pod how busy it is, as some agents do.
func (p *pod) measure() {
	metav1.SetMetaDataAnnotation(&p.object.ObjectMeta, "demo.tarn.dev/cpu", fmt.Sprintf("%dm", p.w.between(1, 999)))
	p.write()
}
