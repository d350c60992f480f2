package ondisk

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/apiserver"
	"github.com/tarnproject/tarn/memory"
)

// What a replica in memory can do, it can with a disk behind it, from the first
// moment of a restart on; one on disk only finds the same by walking.
func TestWhatTheStoreInFrontCanDo(t *testing.T) {
	for name, opts := range map[string][]Option{"memory in front": nil, "disk only": {Only()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apiserver.New(apiserver.Options{AnyNamespace: true})
				defer server.Close()
				must(t, server.Put(pod("a1", "node-1"), pod("a2", "node-1"), pod("b1", "node-2")))
				w, dir := &tap{}, directory(t)
				first := startProcess(t, dir, server, w, opts)
				must(t, first.WaitSynced(t.Context()))
				first.end()

				second := startProcess(t, dir, server, w, opts)
				must(t, second.WaitFor(t.Context(), "1")) // what was on disk is there
				byNode := tarn.IndexBy(second.Replica, func(p *corev1.Pod) string { return p.Spec.NodeName })
				var names []string
				for p := range byNode.Get("node-1") {
					names = append(names, p.Name)
				}
				if slices.Sort(names); !slices.Equal(names, []string{"a1", "a2"}) {
					t.Errorf("on node-1 are %q", names)
				}
				store, inMemory := memory.Of(second.Replica)
				if inMemory != (opts == nil) {
					t.Errorf("the store of package memory is there: %v", inMemory)
				}
				view, err := tarn.NewView(t.Context(), second.Replica)
				if inMemory {
					must(t, err)
					must(t, server.Delete(pod("a1", "")))
					must(t, second.WaitSynced(t.Context()))
					synctest.Wait()
					state, err := second.In(view)
					must(t, err)
					if state.Len() != 3 || second.Len() != 2 || store.Len() != 2 {
						t.Errorf("the view has %d objects, the replica %d, its store %d", state.Len(), second.Len(), store.Len())
					}
					view.Close()
				} else if err == nil {
					t.Error("a store on disk gave a view")
				}
				second.end()
			})
		})
	}
}
