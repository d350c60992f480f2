package ctrlcache_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/tarnproject/tarn/ctrlcache"
)

// TestErrorsKeepTheirWords compares the texts of errors with controller-runtime's, which
// programs look for: ours has them at its beginning, or is the same where programs are
// likely to compare the whole.
func TestErrorsKeepTheirWords(t *testing.T) {
	north := func() cache.Options {
		return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}}}
	}
	two := func() cache.Options {
		return cache.Options{DefaultNamespaces: map[string]cache.Config{"north": {}, "south": {}}}
	}
	removed := func(x *stage) cache.Informer {
		informer, err := x.cache.GetInformer(x.ctx, &corev1.Pod{})
		if err == nil {
			err = x.cache.RemoveInformer(x.ctx, &corev1.Pod{})
		}
		if err != nil {
			x.Fatal(err)
		}
		x.until("stopped", informer.IsStopped)
		return informer
	}
	twice := func(x *stage) error {
		add := func() error {
			return x.cache.IndexField(x.ctx, &corev1.Pod{}, "node", func(client.Object) []string { return nil })
		}
		if err := add(); err != nil {
			x.Fatal(err)
		}
		return add()
	}
	// Objects that the cache holds as another type than the one that is read.
	strange := func() cache.Options {
		return cache.Options{DefaultTransform: func(any) (any, error) {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: "a", ResourceVersion: "1"}}, nil
		}}
	}
	refusing := func(x *stage) context.Context {
		x.server.mu.Lock()
		defer x.server.mu.Unlock()
		x.server.refuse = func(*http.Request) (int, string) { return http.StatusForbidden, "no" }
		ctx, cancel := context.WithTimeout(x.ctx, 50*time.Millisecond)
		x.Cleanup(cancel)
		return ctx
	}
	for name, c := range map[string]struct {
		options func() cache.Options
		provoke func(*stage) error
		same    bool
	}{
		"a paged list":   {nil, func(x *stage) error { return x.cache.List(x.ctx, &corev1.PodList{}, client.Continue("token")) }, true},
		"a second start": {nil, func(x *stage) error { return x.cache.Start(x.ctx) }, false},
		"a namespace that is not cached": {north, func(x *stage) error {
			return x.cache.Get(x.ctx, client.ObjectKey{Namespace: "south", Name: "a"}, &corev1.Pod{})
		}, false},
		"a list of such a namespace": {north, func(x *stage) error {
			return x.cache.List(x.ctx, &corev1.PodList{}, client.InNamespace("south"))
		}, false},
		"an index that is not there": {nil, func(x *stage) error {
			return x.cache.List(x.ctx, &corev1.PodList{}, client.MatchingFields{".metadata.controller": "x"})
		}, false},
		"an informer that does not sync": {nil, func(x *stage) error {
			return x.cache.Get(refusing(x), client.ObjectKey{Namespace: "north", Name: "a"}, &corev1.Pod{})
		}, false},
		"an unstructured one": {nil, func(x *stage) error { return x.cache.List(refusing(x), emptyLakes()) }, false},
		"an informer of metadata": {nil, func(x *stage) error {
			_, err := x.cache.GetInformer(refusing(x), emptyMetadata(podKind))
			return err
		}, false},
		"an informer of lists": {nil, func(x *stage) error {
			_, err := x.cache.GetInformerForKind(x.ctx, podKind.GroupVersion().WithKind("PodList"))
			return err
		}, true},
		"an index that is there":               {nil, twice, true},
		"an index that is there in namespaces": {two, twice, false},
		"an index after the end": {two, func(x *stage) error {
			return removed(x).AddIndexers(toolscache.Indexers{})
		}, false},
		"a handler after the end": {two, func(x *stage) error {
			_, err := removed(x).AddEventHandler(toolscache.ResourceEventHandlerFuncs{})
			return err
		}, false},
		"an object of another type": {strange, func(x *stage) error {
			return x.cache.Get(x.ctx, client.ObjectKey{Namespace: "north", Name: "a"}, &corev1.Pod{})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for _, m := range makers {
				s := scenario{options: c.options, play: func(x *stage) {
					err := c.provoke(x)
					if err == nil {
						x.Fatalf("%s: no error", m.name)
					}
					texts = append(texts, err.Error())
				}}
				s.run(t, m.make)
			}
			for i, text := range texts {
				if !strings.HasPrefix(text, texts[0]) || c.same && text != texts[0] {
					t.Errorf("%s says %q, controller-runtime %q", makers[i].name, text, texts[0])
				}
			}
		})
	}
}

// soonSynced is an informer that has synced as soon as it runs. A caller that asks
// earlier waits a second for that.
type soonSynced struct {
	*controllertest.FakeInformer
	ran chan struct{}
}

func (s soonSynced) RunWithContext(context.Context) { close(s.ran) }

func (s soonSynced) HasSynced() bool {
	select {
	case <-s.ran:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// TestCancelledContextsFail reads with a context that has ended from informers that are
// made for the read: the answer does not depend on how soon they sync.
func TestCancelledContextsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := ctrlcache.NewCache(&rest.Config{}, cache.Options{Mapper: newMapper(),
			NewInformer: func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
				return soonSynced{controllertest.NewFakeInformer(), make(chan struct{})}
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = c.Start(ctx) })
		defer running.Wait()
		defer cancel()
		c.WaitForCacheSync(ctx)
		ended, end := context.WithCancel(ctx)
		end()
		if err := c.List(ended, &corev1.PodList{}); !apierrors.IsTimeout(err) {
			t.Errorf("the list ended with: %v", err)
		}
		if _, err := c.GetInformer(ended, &corev1.ConfigMap{}); !apierrors.IsTimeout(err) {
			t.Errorf("the informer: %v", err)
		}
		if err := c.Get(ended, podA, emptyLake()); !apierrors.IsTimeout(err) {
			t.Errorf("the read ended with: %v", err)
		}
		if err := c.Get(ended, podA, &corev1.Pod{}); !apierrors.IsNotFound(err) {
			t.Errorf("the read from an informer that had synced before: %v", err)
		}
	})
}
