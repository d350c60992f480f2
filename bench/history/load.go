package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/bench/podset"
	"github.com/tarnproject/tarn/kube"
)

// tick is the time between two updates: a hundred in a second, 8.64 million in a day.
const tick = 10 * time.Millisecond

// load is what is written: the pods of a set, and their status updates. The same updates
// come in each run, so that a directory can be continued.
type load struct {
	set  *podset.Set
	pods []*corev1.Pod
	// made is how many updates were made.
	made    int
	version int
	now     time.Time
	random  *rand.Rand
}

// began is when the first state was heard.
var began = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newLoad(set *podset.Set) (*load, error) {
	l := &load{set: set, version: set.Version, now: began, random: rand.New(rand.NewPCG(17, 1))}
	for _, raw := range set.Pods {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(raw); err != nil {
			return nil, err
		}
		l.pods = append(l.pods, pod)
	}
	return l, nil
}

// skip makes updates that were written before.
func (l *load) skip(to int) {
	for l.made < to {
		l.update()
	}
}

func (l *load) key(i int) tarn.Key {
	return tarn.Key(l.pods[i].Namespace + "/" + l.pods[i].Name)
}

func (l *load) change(i int, kind tarn.ChangeType) tarn.Change[*corev1.Pod] {
	return tarn.Change[*corev1.Pod]{Type: kind, Key: l.key(i), Object: l.pods[i], Version: tarn.Version(l.pods[i].ResourceVersion), Heard: l.now}
}

// update is a status update of any pod, as kubelets send them: four of five times the pod
// becomes unready or ready again, else its first container is restarted. What it changes
// is copied, since states of one batch must not share it.
func (l *load) update() tarn.Change[*corev1.Pod] {
	i, restart := l.random.IntN(len(l.pods)), l.random.IntN(5) == 0
	l.made++
	l.version++
	l.now = l.now.Add(tick)
	at := metav1.NewTime(l.now.Truncate(time.Second))
	pod := *l.pods[i]
	l.pods[i] = &pod
	pod.ResourceVersion = strconv.Itoa(l.version)
	pod.Status.Conditions = slices.Clone(pod.Status.Conditions)
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.LastTransitionTime = at
			if !restart && c.Status == corev1.ConditionTrue {
				c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			} else {
				c.Status, c.Reason = corev1.ConditionTrue, ""
			}
		}
	}
	pod.Status.ContainerStatuses = slices.Clone(pod.Status.ContainerStatuses)
	if len(pod.Status.ContainerStatuses) > 0 {
		s := &pod.Status.ContainerStatuses[0]
		if s.Ready = !s.Ready; restart {
			s.RestartCount++
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: at, FinishedAt: at, ContainerID: s.ContainerID}
			s.ContainerID = fmt.Sprintf("containerd://%016x%016x%016x%016x", l.random.Uint64(), l.random.Uint64(), l.random.Uint64(), l.random.Uint64())
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
		}
	}
	pod.ManagedFields = slices.Clone(pod.ManagedFields)
	for i := range pod.ManagedFields {
		if m := &pod.ManagedFields[i]; m.Subresource == "status" {
			m.Time = &at
		}
	}
	return l.change(i, tarn.Update)
}

// batch is the next n updates.
func (l *load) batch(n int) tarn.Batch[*corev1.Pod] {
	b := tarn.Batch[*corev1.Pod]{Changes: make([]tarn.Change[*corev1.Pod], 0, n)}
	for range n {
		b.Changes = append(b.Changes, l.update())
	}
	return l.at(b)
}

// first is the whole state.
func (l *load) first() tarn.Batch[*corev1.Pod] {
	b := tarn.Batch[*corev1.Pod]{Whole: true}
	for i := range l.pods {
		b.Changes = append(b.Changes, l.change(i, tarn.Add))
	}
	return l.at(b)
}

func (l *load) at(b tarn.Batch[*corev1.Pod]) tarn.Batch[*corev1.Pod] {
	b.Positions, b.LastContact = []tarn.Position{tarn.At(tarn.Version(strconv.Itoa(l.version)))}, l.now
	return b
}

// origin is that of a copy of pods.
func origin(ctx context.Context) (of kube.Origin, err error) {
	server := apiserver.New(apiserver.Options{AnyNamespace: true})
	defer server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := kube.Reflect[*corev1.Pod](ctx, server.Config(), kube.Sink(func(o kube.Origin) (tarn.Sink[*corev1.Pod], error) {
		of = o
		return idle{}, nil
	}))
	if err != nil {
		return of, err
	}
	cancel()
	<-r.Done()
	return of, nil
}

// idle is a sink that keeps nothing.
type idle struct{}

func (idle) Policy() tarn.SinkPolicy[*corev1.Pod]                  { return tarn.SinkPolicy[*corev1.Pod]{Name: "idle"} }
func (idle) Open(context.Context, func() error) (tarn.Kept, error) { return tarn.Kept{}, nil }
func (idle) Commit(context.Context, tarn.Batch[*corev1.Pod]) error { return nil }
func (idle) Close()                                                {}
