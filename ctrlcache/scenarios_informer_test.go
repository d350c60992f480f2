package ctrlcache_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// journal is a handler that remembers, in the order of the words.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) OnAdd(o any, initial bool) {
	word := "add "
	if initial {
		word = "initial "
	}
	j.add(word + show(o.(client.Object)))
}

func (j *journal) OnUpdate(old, now any) {
	j.add("update " + old.(client.Object).GetResourceVersion() + " " + show(now.(client.Object)))
}

func (j *journal) OnDelete(o any) { j.add("delete " + show(o.(client.Object))) }

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(j.lines)), "\n")
}

func (j *journal) has(n int) func() bool {
	return func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.lines) >= n
	}
}

func TestInformers(t *testing.T) {
	two := func() cache.Options {
		return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}}
	}
	// A program that has removed an informer removes its handler afterwards.
	removeLate := func(x *stage) {
		informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
		if err != nil {
			x.Fatal(err)
		}
		handle, err := informer.AddEventHandler(&journal{})
		if err != nil {
			x.Fatal(err)
		}
		if err := x.cache.RemoveInformer(x.ctx, &corev1.Pod{}); err != nil {
			x.Error(err)
		}
		x.until("stop", informer.IsStopped)
		for _, object := range []client.Object{&corev1.Pod{}, emptyLake()} {
			another, err := x.cache.GetInformer(x.ctx, object)
			if err != nil {
				x.Fatal(err)
			}
			x.note("handle of another informer: %v", another.RemoveEventHandler(handle))
			x.note("no handle: %s", classify(another.RemoveEventHandler(nil)))
		}
	}
	follow := func(x *stage) {
		forms := map[string]client.Object{"pods": &corev1.Pod{}, "lakes": emptyLake(), "configmaps": emptyMetadata(resources["configmaps"])}
		for _, resource := range []string{"pods", "lakes", "configmaps"} {
			informer, err := x.cache.GetInformer(x.ctx, forms[resource])
			if err != nil {
				x.Fatal(err)
			}
			j := &journal{}
			handle, err := informer.AddEventHandler(j)
			if err != nil {
				x.Fatal(err)
			}
			x.until("handler synced", handle.HasSynced)
			<-handle.HasSyncedChecker().Done()
			<-informer.HasSyncedChecker().Done()
			x.note("synced %t stopped %t", informer.HasSynced(), informer.IsStopped())
			have := len(j.lines)
			x.server.put(resource, object("north", "new", map[string]any{"nodeName": "n9"}))
			x.until("add", j.has(have+1))
			x.server.put(resource, object("north", "new", map[string]any{"nodeName": "n8"}))
			x.until("update", j.has(have+2))
			x.server.remove(resource, "north", "new")
			x.until("delete", j.has(have+3))
			x.note("%s", j)
			x.note("removed: %s", classify(informer.RemoveEventHandler(handle)))
			late := &journal{}
			if _, err := informer.AddEventHandlerWithResyncPeriod(late, 0); err != nil {
				x.Error(err)
			}
			x.until("late handler", late.has(have))
			x.note("late %s", late)
		}
	}
	runScenarios(t, map[string]scenario{
		"events":                   {play: follow},
		"events of two namespaces": {options: two, play: follow},
		"the same informer": {play: func(x *stage) {
			one, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			two, err2 := x.cache.GetInformerForKind(x.ctx, podKind)
			three, err3 := x.cache.GetInformer(x.ctx, emptyMetadata(podKind))
			x.note("%t %t %s %s %s", one == two, one == three, classify(err), classify(err2), classify(err3))
			_, shared := one.(toolscache.SharedIndexInformer)
			x.note("shared index informer: %t", shared)
		}},
		"asked for before the start": {
			before: func(x *stage) {
				x.get(&corev1.Pod{}, "north", "a")
				x.list(emptyLakes())
				informer, err := x.cache.GetInformer(x.ctx, &corev1.Node{})
				x.note("%s %t", classify(err), informer.HasSynced())
				ended, cancel := context.WithCancel(x.ctx)
				cancel()
				x.note("waits for the start: %t", !x.cache.WaitForCacheSync(ended))
			},
			play: func(x *stage) { x.note("%s", strings.Join(x.server.asked("watch"), "\n")) },
		},
		"not waiting": {play: func(x *stage) {
			x.server.hold("")
			informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
			x.note("%s", classify(err))
			x.until("sync", informer.HasSynced)
		}},
		"context ends while waiting": {
			play: func(x *stage) {
				x.server.mu.Lock()
				x.server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "so that nothing syncs" }
				x.server.mu.Unlock()
				ended, cancel := context.WithCancel(x.ctx)
				cancel()
				_, err := x.cache.GetInformer(ended, &corev1.Pod{})
				x.note("%s", classify(err))
				_, err = x.cache.GetInformerForKind(ended, resources["configmaps"])
				x.note("%s", classify(err))
				x.note("%s", classify(x.cache.Get(ended, client.ObjectKey{Name: "n1"}, &corev1.Node{})))
			},
		},
		"removed and asked for again": {play: func(x *stage) {
			informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			if err != nil {
				x.Fatal(err)
			}
			x.note("removed %s", classify(x.cache.RemoveInformer(x.ctx, &corev1.Pod{})))
			x.until("stop", informer.IsStopped)
			_, err = informer.AddEventHandler(&journal{})
			x.note("handler on a removed informer: %s", classify(err))
			x.note("not there: %s", classify(x.cache.RemoveInformer(x.ctx, &corev1.Node{})))
			x.server.put("pods", pod("north", "later", "n1", "Running", ""))
			x.get(&corev1.Pod{}, "north", "later")
			again, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			x.note("%s %t %t", classify(err), again == informer, again.IsStopped())
		}},
		"removal in several namespaces": {options: two, play: func(x *stage) {
			informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			if err != nil {
				x.Fatal(err)
			}
			x.note("removed %s", classify(x.cache.RemoveInformer(x.ctx, &corev1.Pod{})))
			x.until("stop", informer.IsStopped)
			x.list(&corev1.PodList{})
		}},
		"handler of an informer that was removed":                   {play: removeLate},
		"handler of an informer of two namespaces that was removed": {options: two, play: removeLate},
		"started twice": {play: func(x *stage) { x.note("%s", classify(x.cache.Start(x.ctx))) }},
		"handler of another informer": {options: two, play: func(x *stage) {
			pods, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			nodes, err2 := x.cache.GetInformer(x.ctx, &corev1.Node{})
			if err != nil || err2 != nil {
				x.Fatal(err, err2)
			}
			handle, err := pods.AddEventHandlerWithOptions(&journal{}, toolscache.HandlerOptions{})
			x.note("%s", classify(err))
			x.note("%s %s", classify(pods.RemoveEventHandler(handle)), classify(pods.RemoveEventHandler(handle)))
			x.note("%s", classify(nodes.AddIndexers(toolscache.Indexers{"x": func(any) ([]string, error) { return []string{"y"}, nil }})))
		}},
	})
}
