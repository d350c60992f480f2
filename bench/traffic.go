package main

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"
)

// traffic is updates that go round the keys in turn, so that the last round
// holds the final state of every key.
type traffic struct {
	keys, updates int
}

// pods are what the traffic begins with.
func (t traffic) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, t.keys)
	for i := range pods {
		pods[i] = newPod(smallPod, i)
	}
	return pods
}

// event is the i-th update of the pods.
func (t traffic) event(pods []*corev1.Pod, i int) watch.Event {
	return watch.Event{Type: watch.Modified, Object: updated(pods[i%t.keys], t.keys+i)}
}

// final says whether the pod is in its last state.
func (t traffic) final(pod *corev1.Pod) bool {
	return pod.ResourceVersion >= version(t.updates)
}

// shownBy says whether the store holds the very last update.
func (t traffic) shownBy(store upstream.Store) bool {
	last := newPod(smallPod, (t.updates-1)%t.keys)
	object, _, err := store.GetByKey(last.Namespace + "/" + last.Name)
	if err != nil || object == nil {
		return false
	}
	return object.(*corev1.Pod).ResourceVersion == version(t.keys+t.updates-1)
}

// A follower is a handler that counts its calls and says when it has seen the
// final state of every key. It does not count on seeing every step: a contender
// may leave out states that are outdated when the handler gets to them.
type follower struct {
	upstream.ResourceEventHandlerFuncs
	calls  atomic.Int64
	finals atomic.Int64
	done   chan struct{}
}

func newFollower(t traffic) *follower {
	f := &follower{done: make(chan struct{})}
	f.UpdateFunc = func(_, object any) {
		f.calls.Add(1)
		if t.final(object.(*corev1.Pod)) && f.finals.Add(1) == int64(t.keys) {
			close(f.done)
		}
	}
	return f
}

// gate blocks its callers until it is released.
type gate struct {
	entered, open chan struct{}
	enter, leave  sync.Once
}

func newGate() *gate { return &gate{entered: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) pass() {
	g.enter.Do(func() { close(g.entered) })
	<-g.open
}

// release lets everyone pass from now on; it may be called more than once.
func (g *gate) release() { g.leave.Do(func() { close(g.open) }) }
