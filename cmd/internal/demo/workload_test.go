package demo

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/internal/testsize"
)

func TestInvariants(t *testing.T) {
	for _, test := range []struct {
		config Config
		lived  time.Duration
	}{
		{Config{Pods: 1, Rate: 20, Seed: 1}, 10 * time.Minute},
		{Config{Pods: 12, Databases: 3, Rate: 30, Seed: 2}, 5 * time.Minute},
		{Config{Pods: 120, Databases: 10, Rate: 50, Seed: 3}, 3 * time.Minute},
		{Config{Pods: 300, Databases: 10, Rate: 1000, Seed: 4}, 10 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d pods at %.0f", test.config.Pods, test.config.Rate), func(t *testing.T) {
			target := newRecorder(t)
			w := build(t, target, test.config)
			if got := count[*corev1.Pod](target); got != test.config.Pods {
				t.Errorf("begins with %d pods, want %d", got, test.config.Pods)
			}
			if got := count[*unstructured.Unstructured](target); got != test.config.Databases {
				t.Errorf("begins with %d databases, want %d", got, test.config.Databases)
			}
			target.advance(w, test.lived/time.Duration(testsize.Of(1, 3)))
			checkConverges(t, target, w)
		})
	}
}

// checkConverges stops new changes, and waits until their consequences are done.
func checkConverges(t *testing.T, target *recorder, w *Workload) {
	t.Helper()
	w.SetRate(0)
	target.advance(w, 3*time.Minute)
	quiet := target.writes
	target.advance(w, time.Minute)
	if target.writes != quiet {
		t.Errorf("there are %d more writes minutes after the rate was set to 0", target.writes-quiet)
	}
	if len(target.terminating) > 0 {
		t.Errorf("still terminating: %v", target.terminating)
	}
	for _, n := range w.nodes {
		if !n.up {
			t.Errorf("%s is still down", n.name())
		}
	}
	wanted := 0
	for _, a := range w.apps {
		if !a.settled() {
			t.Errorf("%s is not at rest", a.name)
		}
		wanted += int(a.usualNow())
		stored := target.objects[keyOf(a.deployment)].(*appsv1.Deployment)
		replicas, status := *stored.Spec.Replicas, stored.Status
		if status.Replicas != replicas || status.ReadyReplicas != replicas || status.UpdatedReplicas != replicas || status.UnavailableReplicas != 0 {
			t.Errorf("%s wants %d replicas and reports %+v", a.name, replicas, status)
		}
		if got := len(a.slice.Endpoints); got != int(replicas) {
			t.Errorf("%s has %d endpoints, want %d", a.name, got, replicas)
		}
	}
	if got := count[*corev1.Pod](target); got != wanted {
		t.Errorf("there are %d pods, want %d", got, wanted)
	}
	if most := w.eventLog.limit; count[*corev1.Event](target) > most {
		t.Errorf("there are %d Events, more than %d", count[*corev1.Event](target), most)
	}
}

func (a *app) usualNow() int32 { return *a.deployment.Spec.Replicas }

// A rollout keeps within its limits from beginning to end, and replaces every
// pod.
func TestRollout(t *testing.T) {
	target := newRecorder(t)
	w := build(t, target, Config{Pods: 40, Seed: 7})
	a := w.apps[0]
	for _, other := range w.apps {
		if len(other.current().pods) > len(a.current().pods) {
			a = other
		}
	}
	old := a.current()
	a.deploy()
	most, least := a.limits()
	for until := w.queue.now.Add(5 * time.Minute); w.queue.step(until); {
		var all, ready int32
		for _, set := range a.sets {
			all += set.active()
			ready += set.ready()
		}
		if all > most || ready < least {
			t.Fatalf("%d pods, %d of them ready; at most %d are allowed and at least %d", all, ready, most, least)
		}
	}
	if len(old.pods) > 0 || *old.object.Spec.Replicas != 0 || !a.settled() {
		t.Errorf("of the old pods %d are left, at rest: %t", len(old.pods), a.settled())
	}
	if a.current() == old || a.current().object.Spec.Template.Spec.Containers[0].Image == old.object.Spec.Template.Spec.Containers[0].Image {
		t.Error("the pods run what they ran before")
	}
}

// Pods whose image cannot be pulled wait, the old pods keep running, and the next
// release repairs it.
func TestBrokenRollout(t *testing.T) {
	target := newRecorder(t)
	w := build(t, target, Config{Pods: 40, Seed: 8})
	a := w.apps[0]
	_, least := a.limits()
	a.deployBroken()
	broken := a.current()
	target.advance(w, 12*time.Second)
	for _, p := range broken.pods {
		if waiting := p.object.Status.ContainerStatuses[0].State.Waiting; waiting == nil {
			t.Errorf("%s does not wait for its image", p.object.Name)
		}
	}
	if ready := a.sets[0].ready(); len(broken.pods) == 0 || ready < least {
		t.Errorf("%d pods wait, %d of the old ones are ready, want %d at least", len(broken.pods), ready, least)
	}
	target.advance(w, 5*time.Minute)
	if !a.settled() || a.current() == broken {
		t.Error("it has not been repaired")
	}
}

func TestNodeFailure(t *testing.T) {
	target := newRecorder(t)
	w := build(t, target, Config{Pods: 60, Seed: 9})
	n := w.nodes[1]
	lost := len(n.pods)
	n.fail()
	for _, p := range n.pods {
		if p.ready {
			t.Errorf("%s is ready on a node that does not answer", p.object.Name)
		}
	}
	target.advance(w, evictAfter+time.Second)
	if len(target.terminating) != lost {
		t.Errorf("%d pods terminate, want the %d of the node", len(target.terminating), lost)
	}
	target.advance(w, 30*time.Second)
	if !n.up || len(target.terminating) > 0 {
		t.Errorf("the node is up: %t; %d pods still terminate", n.up, len(target.terminating))
	}
	checkConverges(t, target, w)
}

// A ReplicaSet is deleted after its pods, however long these take.
func TestRetire(t *testing.T) {
	target := newRecorder(t)
	w := build(t, target, Config{Pods: 40, Seed: 10})
	a := w.apps[0]
	for _, n := range w.nodes[1:] {
		n.fail()
	}
	a.deploy()
	target.advance(w, 5*time.Second)
	a.markDeleted()
	target.advance(w, time.Minute)
	if len(a.sets) > 0 || slices.Contains(w.apps, a) {
		t.Errorf("%d sets are left", len(a.sets))
	}
	checkConverges(t, target, w)
}

func TestSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for the same beginning
		runSeed := func(seed uint64) uint64 {
			target := newRecorder(t)
			target.hashContent = true
			w := build(t, target, Config{Pods: 30, Databases: 5, Rate: 40, Seed: seed})
			target.advance(w, time.Minute)
			return target.sum
		}
		if first := runSeed(5); first != runSeed(5) {
			t.Error("two runs of the same seed differ")
		} else if first == runSeed(6) {
			t.Error("runs of two seeds are equal")
		}
	})
}

func TestRate(t *testing.T) {
	for rate, lived := range map[float64]time.Duration{3: 40 * time.Minute, 25: 5 * time.Minute, 400: 20 * time.Second} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			w := build(t, newRecorder(t), Config{Pods: 200, Databases: 20, Rate: rate, Seed: 1})
			w.advance(20 * time.Second)
			before := w.Writes()
			w.advance(lived)
			got := float64(w.Writes()-before) / lived.Seconds()
			t.Logf("%.1f writes a second at a rate of %.0f", got, rate)
			if math.Abs(got-rate) > rate/10 {
				t.Errorf("%.1f writes a second, want %.0f", got, rate)
			}
		})
	}
}

// leaseCounter counts how often leases are renewed.
type leaseCounter struct {
	*recorder
	renewed int
}

func (c *leaseCounter) Put(object Object) error {
	if _, ok := object.(*coordinationv1.Lease); ok {
		c.renewed++
	}
	return c.recorder.Put(object)
}

// In a cluster of many nodes there are changes other than lease renewals.
func TestLeasesDoNotUseUpTheRate(t *testing.T) {
	target := &leaseCounter{recorder: newRecorder(t)}
	w, err := Build(t.Context(), target, Config{Pods: 5000, Rate: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	target.building = false
	w.advance(time.Minute)
	writes, leases := w.Writes(), target.renewed
	w.advance(2 * time.Minute)
	all := int(w.Writes() - writes)
	if leases = target.renewed - leases; leases == 0 || leases > all*2/3 {
		t.Errorf("of %d changes %d are leases", all, leases)
	}
}
