package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recorder is a target that keeps all objects in memory and checks that every
// write is one that can happen in a cluster.
type recorder struct {
	t           testing.TB
	objects     map[string]Object
	terminating map[string]bool
	uids        map[types.UID]string
	building    bool // anything may appear
	hashContent bool // add the content of objects to the sum
	writes      int
	sum         uint64
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{t: t, objects: map[string]Object{}, terminating: map[string]bool{}, uids: map[types.UID]string{}, building: true}
}

func keyOf(o Object) string { return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()) }

func (l *recorder) Put(object Object) error {
	l.t.Helper()
	key := keyOf(object)
	l.record("put " + key)
	before := l.objects[key]
	after := object.DeepCopyObject().(Object)
	if before != nil {
		after.SetUID(before.GetUID())
	} else {
		after.SetUID(types.UID(fmt.Sprintf("uid-%d", l.writes)))
		l.uids[after.GetUID()] = key
	}
	l.checkOwners(key, after)
	if p, ok := after.(*corev1.Pod); ok {
		l.checkPod(before, p)
	}
	if l.hashContent {
		encoded, err := json.Marshal(after)
		if err != nil {
			l.t.Errorf("%s cannot be written: %v", key, err)
		}
		l.record(string(encoded))
	}
	l.objects[key] = after
	if l.terminating[key] && len(after.GetFinalizers()) == 0 {
		l.remove(key)
	}
	return nil
}

func (l *recorder) Delete(object Object) error {
	key := keyOf(object)
	l.record("delete " + key)
	switch before := l.objects[key]; {
	case before == nil:
		l.t.Errorf("%s is deleted and was not there", key)
	case len(before.GetFinalizers()) > 0:
		l.terminating[key] = true
	default:
		l.remove(key)
	}
	return nil
}

func (l *recorder) UID(_ context.Context, object Object) (types.UID, error) {
	return l.objects[keyOf(object)].GetUID(), nil
}

func (l *recorder) remove(key string) {
	gone := l.objects[key]
	delete(l.objects, key)
	delete(l.terminating, key)
	delete(l.uids, gone.GetUID())
	if _, owns := gone.(*appsv1.ReplicaSet); !owns {
		return // nothing else goes that owns anything
	}
	for other, o := range l.objects {
		for _, r := range o.GetOwnerReferences() {
			if r.UID == gone.GetUID() {
				l.t.Errorf("%s goes, and %s is left without its owner", key, other)
			}
		}
	}
}

func (l *recorder) record(text string) {
	l.writes++
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %s", l.sum, text)
	l.sum = sum.Sum64()
}

func (l *recorder) checkOwners(key string, o Object) {
	for _, r := range o.GetOwnerReferences() {
		if l.uids[r.UID] == "" {
			l.t.Errorf("%s is owned by %s %s (%s), which does not exist", key, r.Kind, r.Name, r.UID)
		}
	}
}

var nextPhase = map[corev1.PodPhase][]corev1.PodPhase{
	corev1.PodPending: {corev1.PodPending, corev1.PodRunning},
	corev1.PodRunning: {corev1.PodRunning},
}

func (l *recorder) checkPod(before Object, p *corev1.Pod) {
	if before == nil {
		if !l.building && (p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "") {
			l.t.Errorf("pod %s appears in phase %s on node %q", p.Name, p.Status.Phase, p.Spec.NodeName)
		}
		return
	}
	old := before.(*corev1.Pod)
	if !slices.Contains(nextPhase[old.Status.Phase], p.Status.Phase) {
		l.t.Errorf("pod %s goes from %s to %s", p.Name, old.Status.Phase, p.Status.Phase)
	}
	if old.Spec.NodeName != "" && old.Spec.NodeName != p.Spec.NodeName {
		l.t.Errorf("pod %s moves from %s to %s", p.Name, old.Spec.NodeName, p.Spec.NodeName)
	}
	if p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == "" {
		l.t.Errorf("pod %s runs nowhere", p.Name)
	}
	for i, c := range p.Status.ContainerStatuses {
		if i < len(old.Status.ContainerStatuses) && c.RestartCount < old.Status.ContainerStatuses[i].RestartCount {
			l.t.Errorf("pod %s has fewer restarts than before", p.Name)
		}
	}
}

// checkSizes checks every ReplicaSet and Deployment between two steps.
func (l *recorder) checkSizes(w *Workload) {
	for _, a := range w.apps {
		var all int32
		for _, set := range a.sets {
			stored, ok := l.objects[keyOf(set.object)].(*appsv1.ReplicaSet)
			if !ok {
				l.t.Fatalf("ReplicaSet %s is not there", set.object.Name)
			}
			if active := set.active(); active > *stored.Spec.Replicas {
				l.t.Fatalf("ReplicaSet %s has %d pods, more than its %d", set.object.Name, active, *stored.Spec.Replicas)
			}
			all += set.active()
		}
		if most, _ := a.limits(); all > most && !a.queued {
			l.t.Fatalf("Deployment %s has %d pods, more than %d and its surge", a.name, all, *a.deployment.Spec.Replicas)
		}
	}
}

func count[T Object](l *recorder) (n int) {
	for _, o := range l.objects {
		if _, ok := o.(T); ok {
			n++
		}
	}
	return n
}

func build(t testing.TB, target *recorder, config Config) *Workload {
	t.Helper()
	w, err := Build(t.Context(), target, config)
	if err != nil {
		t.Fatal(err)
	}
	target.building = false
	return w
}

// advance runs all actions of the next period, and checks sizes after each.
func (l *recorder) advance(w *Workload, d time.Duration) {
	for until := w.queue.now.Add(d); w.queue.step(until); {
		l.checkSizes(w)
	}
}
