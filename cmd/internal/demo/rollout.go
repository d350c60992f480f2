package demo

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// replicaSet is one generation of an app's pods.
type replicaSet struct {
	app    *app
	object *appsv1.ReplicaSet
	pods   []*pod
	// generation is how often its spec has been written.
	generation int64
}

// newSet makes the ReplicaSet of the Deployment's template, without pods, and
// without writing it.
func (a *app) newSet() *replicaSet {
	a.revision++
	metav1.SetMetaDataAnnotation(&a.deployment.ObjectMeta, revisionAnnotation, strconv.Itoa(a.revision))
	hash := a.w.suffix(10)
	object := &appsv1.ReplicaSet{ObjectMeta: a.meta(a.name + "-" + hash)}
	metav1.SetMetaDataLabel(&object.ObjectMeta, hashLabel, hash)
	object.Annotations = map[string]string{revisionAnnotation: strconv.Itoa(a.revision)}
	object.OwnerReferences = ownedBy(a.deployment, appsVersion, "Deployment")
	object.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: a.deployment.Spec.Selector.DeepCopy(), Template: *a.deployment.Spec.Template.DeepCopy()}
	metav1.AddLabelToSelector(object.Spec.Selector, hashLabel, hash)
	metav1.SetMetaDataLabel(&object.Spec.Template.ObjectMeta, hashLabel, hash)
	set := &replicaSet{app: a, object: object, generation: 1}
	a.sets = append(a.sets, set)
	return set
}

// enqueue makes the app's controllers reconcile it soon. Changes until then are
// handled together, as in a real work queue.
func (a *app) enqueue() {
	if a.queued {
		return
	}
	a.queued = true
	a.w.queue.after(a.w.within(10*time.Millisecond, 80*time.Millisecond), func() {
		a.queued = false
		if len(a.sets) == 0 {
			return
		}
		a.rollOut()
		for _, set := range a.sets {
			set.syncPods()
		}
		a.report()
		a.deleteOldSets()
	})
}

// limits are the largest number of pods and the smallest number of ready ones
// during a rollout.
func (a *app) limits() (most, least int32) {
	replicas, strategy := *a.deployment.Spec.Replicas, a.deployment.Spec.Strategy.RollingUpdate
	if strategy == nil {
		return replicas, 0
	}
	part := func(value *intstr.IntOrString, up bool) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromString("25%")), int(replicas), up)
		if err != nil {
			return 0 // an invalid value gets no surge
		}
		return int32(n)
	}
	surge, unavailable := part(strategy.MaxSurge, true), part(strategy.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return replicas + surge, replicas - unavailable
}

// rollOut moves replicas from the older sets to the current one, as far as the
// limits allow.
func (a *app) rollOut() {
	current, wanted := a.current(), *a.deployment.Spec.Replicas
	if a.deleted {
		wanted = 0
	}
	most, least := a.limits()
	var all, ready int32
	for _, set := range a.sets {
		all += *set.object.Spec.Replicas
		ready += set.ready()
	}
	size := *current.object.Spec.Replicas
	switch {
	case size > wanted:
		current.resize(wanted)
	case size < wanted && len(a.sets) == 1:
		current.resize(wanted)
	case size < wanted:
		current.resize(min(wanted, max(size, size+most-all)))
	}
	spare := max(0, ready-least)
	for _, set := range a.sets[:len(a.sets)-1] {
		size := *set.object.Spec.Replicas
		idle := size - set.ready()
		freed := min(size, idle+spare)
		if a.deleted {
			freed = size
		}
		spare -= max(0, freed-idle)
		set.resize(size - freed)
	}
}

func (s *replicaSet) ready() (n int32) {
	for _, p := range s.pods {
		if p.ready && !p.terminating {
			n++
		}
	}
	return n
}

func (s *replicaSet) active() (n int32) {
	for _, p := range s.pods {
		if !p.terminating {
			n++
		}
	}
	return n
}

func (s *replicaSet) resize(replicas int32) {
	before := *s.object.Spec.Replicas
	if before == replicas {
		return
	}
	*s.object.Spec.Replicas = replicas
	s.generation++
	s.app.w.put(s.object)
	verb := "up"
	if replicas < before {
		verb = "down"
	}
	s.app.w.event(s.app.deployment, "Deployment", corev1.EventTypeNormal, "ScalingReplicaSet",
		fmt.Sprintf("Scaled %s replica set %s from %d to %d", verb, s.object.Name, before, replicas), "deployment-controller")
}

// maxPodsPerSync is how many pods a ReplicaSet makes or deletes at a time.
const maxPodsPerSync = 500

// syncPods creates and deletes pods until the set has the wanted number.
func (s *replicaSet) syncPods() {
	wanted := *s.object.Spec.Replicas
	for range maxPodsPerSync {
		switch active := s.active(); {
		case active < wanted:
			s.newPod().create()
		case active > wanted:
			s.podToDelete().terminate()
		default:
			return
		}
	}
	s.app.enqueue()
}

// podToDelete is a pod that is not ready, or else the youngest.
func (s *replicaSet) podToDelete() *pod {
	var found *pod
	for _, p := range s.pods {
		if !p.terminating && (found == nil || found.ready || !p.ready) {
			found = p
		}
	}
	return found
}

// deleteOldSets deletes the ReplicaSets beyond the revision history limit.
func (a *app) deleteOldSets() {
	for len(a.sets) > keptSets+1 || a.deleted && len(a.sets) > 0 {
		oldest := a.sets[0]
		if *oldest.object.Spec.Replicas > 0 || len(oldest.pods) > 0 {
			return
		}
		a.w.delete(oldest.object)
		a.sets = a.sets[1:]
	}
	if len(a.sets) == 0 {
		a.w.apps = slices.DeleteFunc(a.w.apps, func(other *app) bool { return other == a })
	}
}
