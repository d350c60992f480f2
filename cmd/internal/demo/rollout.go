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

// wake makes the app's controllers look at it soon. What happens until then they
// see at once, as real ones do.
func (a *app) wake() {
	if a.due {
		return
	}
	a.due = true
	a.w.agenda.after(a.w.within(10*time.Millisecond, 80*time.Millisecond), func() {
		a.due = false
		if len(a.sets) == 0 {
			return
		}
		a.roll()
		for _, set := range a.sets {
			set.match()
		}
		a.report()
		a.tidy()
	})
}

// limits are how many pods an app may have at most, and how many of them must be
// ready at least, while it is rolled out.
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

// roll moves replicas from the older sets to the current one, as far as the
// limits allow.
func (a *app) roll() {
	current, wanted := a.current(), *a.deployment.Spec.Replicas
	if a.retired {
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
		if a.retired {
			freed = size
		}
		spare -= max(0, freed-idle)
		set.resize(size - freed)
	}
}

func (s *replicaSet) ready() (n int32) {
	for _, p := range s.pods {
		if p.ready && !p.leaving {
			n++
		}
	}
	return n
}

func (s *replicaSet) active() (n int32) {
	for _, p := range s.pods {
		if !p.leaving {
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

// burst is how many pods a ReplicaSet makes or deletes at a time.
const burst = 500

// match makes and deletes pods until the set has as many as it should.
func (s *replicaSet) match() {
	wanted := *s.object.Spec.Replicas
	for range burst {
		switch active := s.active(); {
		case active < wanted:
			s.newPod().begin()
		case active > wanted:
			s.leastUseful().leave()
		default:
			return
		}
	}
	s.app.wake()
}

// leastUseful is a pod that is not ready, or else the youngest.
func (s *replicaSet) leastUseful() *pod {
	var found *pod
	for _, p := range s.pods {
		if !p.leaving && (found == nil || found.ready || !p.ready) {
			found = p
		}
	}
	return found
}

// tidy deletes the ReplicaSets that are too old to be kept.
func (a *app) tidy() {
	for len(a.sets) > keptSets+1 || a.retired && len(a.sets) > 0 {
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
