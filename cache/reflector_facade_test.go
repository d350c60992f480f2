package cache

import (
	"context"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	upstream "k8s.io/client-go/tools/cache"

	"github.com/tarnproject/tarn/internal/guard"
)

// What the facade relies on in client-go's reflector, of whatever version this is built
// with: a watch that ends with 410 ends the pass, without an error, without another
// watch and without another list.
func TestClientGoEndsAPassQuietlyAfter410(t *testing.T) {
	for name, streamed := range map[string]bool{"listed": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists, watches int
				lw := &ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						lists++
						return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
					},
					WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
						watches++
						w := watch.NewFakeWithChanSize(3, false)
						initial := options.SendInitialEvents != nil && *options.SendInitialEvents
						if initial {
							if !streamed {
								w.Stop() // it lists instead
								return w, nil
							}
							w.Action(watch.Bookmark, &v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
						}
						w.Action(watch.Bookmark, &v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})
						w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
						return w, nil
					},
				}
				r := upstream.NewReflectorWithOptions(lw, &v1.Pod{}, upstream.NewStore(upstream.MetaNamespaceKeyFunc), upstream.ReflectorOptions{Name: "passes"})
				r.ShouldResync = nil
				if err := r.ListAndWatchWithContext(context.Background()); err != nil {
					t.Errorf("the pass ended with %v", err)
				}
				if v := r.LastSyncResourceVersion(); v != "7" {
					t.Errorf("the reflector is at %q", v)
				}
				if lists > 1 || watches > 2 || lists+watches > 3 {
					t.Errorf("%d lists and %d watches", lists, watches)
				}
			})
		})
	}
}

// Guard mode holds for the store of a reflector as for that of an informer. Another store
// owns what it is given, and may change it.
func TestGuardedReflector(t *testing.T) {
	if !guard.Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	listing(t)
	t.Setenv(guard.Variable, "1")
	for name, store := range map[string]Store{"ours": NewStore(MetaNamespaceKeyFunc), "client-go": upstream.NewStore(MetaNamespaceKeyFunc)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reflector := NewReflector(serving(t, "list 5: a@3\nwatch: mod a@6"), &v1.ConfigMap{}, store, 0)
				stop := running(reflector.RunWithContext)
				synctest.Wait()
				var message string
				func() {
					defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
					defer func() { message, _ = guard.Fault(recover()) }()
					store.List()[0].(*v1.ConfigMap).Name = "another"
				}()
				if got, want := strings.HasPrefix(message, "guard mode: a write to metadata.name of v1.ConfigMap"), name == "ours"; got != want {
					t.Errorf("a write was stopped: %v, want %v (%s)", got, want, message)
				}
				stop()
			})
		})
	}
}

// A reflector that is run again is guarded again: the maps of its objects are compared for
// as long as it runs.
func TestGuardedReflectorRunsAgain(t *testing.T) {
	if !guard.Supported {
		t.Skip("this system has no memory that can be made read-only")
	}
	listing(t)
	t.Setenv(guard.Variable, "1")
	sessions := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:goruntime.Stack(stacks, true)]), "guard.(*Session).Run(")
	}
	synctest.Test(t, func(t *testing.T) {
		reflector := NewReflector(serving(t, "list 5: a@3\nwatch: mod a@6\nlist 6: a@6\nwatch:"), &v1.ConfigMap{}, NewStore(MetaNamespaceKeyFunc), 0)
		before := sessions()
		for range 2 {
			stop := running(reflector.RunWithContext)
			synctest.Wait()
			if now := sessions() - before; now != 1 {
				t.Errorf("while it runs, %d sessions compare its maps", now)
			}
			stop()
			synctest.Wait()
			if now := sessions() - before; now != 0 {
				t.Errorf("after it has stopped, %d sessions compare its maps", now)
			}
		}
	})
}
