package ctrlcache_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// TestMergedCheckersAreDoneAtOnce looks at a checker without waiting: when an informer
// of several namespaces has synced, its checker is done, and so is that of a handler.
func TestMergedCheckersAreDoneAtOnce(t *testing.T) {
	x := running(t, twoNamespaces)
	informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	if !toolscache.IsDone(informer.HasSyncedChecker()) {
		t.Error("the informer has synced, and its checker is not done")
	}
	handle, err := informer.AddEventHandler(&journal{})
	if err != nil {
		t.Fatal(err)
	}
	x.until("handler synced", handle.HasSynced)
	for range 100 {
		if !toolscache.IsDone(handle.HasSyncedChecker()) {
			t.Fatal("the handler has synced, and its checker is not done")
		}
	}
}

// TestMergedCheckersWait waits by a channel that was requested before anything synced.
func TestMergedCheckersWait(t *testing.T) {
	x := running(t, twoNamespaces)
	informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	handle, err := informer.AddEventHandler(&journal{})
	if err != nil {
		t.Fatal(err)
	}
	for _, checker := range []toolscache.DoneChecker{informer.HasSyncedChecker(), handle.HasSyncedChecker()} {
		select {
		case <-checker.Done():
		case <-x.ctx.Done():
			t.Errorf("%s is never done", checker.Name())
		}
	}
}

// TestNamesOfMergedCheckers compares what logs call the informers that have not synced.
func TestNamesOfMergedCheckers(t *testing.T) {
	var all [][]string
	for _, m := range makers {
		s := scenario{options: func() cache.Options { return twoNamespaces }, play: func(x *stage) {
			informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
			if err != nil {
				x.Fatal(err)
			}
			handle, err := informer.AddEventHandler(&journal{})
			if err != nil {
				x.Fatal(err)
			}
			names := strings.Split(informer.HasSyncedChecker().Name()+", "+handle.HasSyncedChecker().Name(), ", ")
			slices.Sort(names)
			all = append(all, names)
		}}
		s.run(t, m.make)
	}
	for i, names := range all {
		if diff := cmp.Diff(all[0], names); diff != "" {
			t.Errorf("%s (-controller-runtime):\n%s", makers[i].name, diff)
		}
	}
}
