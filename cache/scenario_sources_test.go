package cache

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes/fake"
	upstreamtesting "k8s.io/client-go/tools/cache/testing"

	framework "github.com/tarnproject/tarn/cache/testing"
)

// fakeSource is a source that others test with.
type fakeSource struct {
	lw ListerWatcher
	// step makes the next change; it returns false after the last.
	step func(n int) bool
	stop func()
}

func configMap(name, content string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if content != "" {
		c.Data = map[string]string{"content": content}
	}
	return c
}

// fakeClientset is client-go's fake clientset: its objects have no versions, and
// it cannot stream its state.
func fakeClientset(told bool) func(*testing.T) fakeSource {
	return func(t *testing.T) fakeSource {
		client := fake.NewClientset(configMap("a", ""), configMap("b", ""))
		maps := client.CoreV1().ConfigMaps("ns")
		var lw ListerWatcher = &ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return maps.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return maps.Watch(ctx, options)
			},
		}
		if told {
			lw = ToListWatcherWithWatchListSemantics(lw.(*ListWatch), client)
		}
		ctx := t.Context()
		steps := []func() error{
			func() error { _, err := maps.Create(ctx, configMap("c", ""), metav1.CreateOptions{}); return err },
			func() error { _, err := maps.Update(ctx, configMap("a", "x"), metav1.UpdateOptions{}); return err },
			func() error { _, err := maps.Update(ctx, configMap("a", "y"), metav1.UpdateOptions{}); return err },
			func() error { time.Sleep(time.Hour); return nil }, // silence is nothing to worry about
			func() error { return maps.Delete(ctx, "b", metav1.DeleteOptions{}) },
			func() error { _, err := maps.Create(ctx, configMap("b", "new"), metav1.CreateOptions{}); return err },
		}
		return fakeSource{lw: lw, stop: func() {}, step: func(n int) bool {
			if n < len(steps) {
				must(steps[n]())
			}
			return n < len(steps)
		}}
	}
}

// controllerSource is what both FakeControllerSources can do.
type controllerSource interface {
	ListerWatcher
	Add(runtime.Object)
	Modify(runtime.Object)
	Delete(runtime.Object)
	AddDropWatch(runtime.Object)
	DeleteDropWatch(runtime.Object)
	ResetWatch()
	Shutdown()
}

// noStreams says that a source cannot stream its state.
type noStreams struct{ ListerWatcher }

func (noStreams) IsWatchListSemanticsUnSupported() bool { return true }

// controlled is a FakeControllerSource, which counts versions and can forget to
// tell.
func controlled(source controllerSource) fakeSource {
	source.Add(configMap("a", ""))
	source.Add(configMap("b", ""))
	steps := []func(){
		func() { source.Add(configMap("c", "")) },
		func() { source.Modify(configMap("a", "x")) },
		func() { source.Delete(configMap("c", "")) },
		func() { source.AddDropWatch(configMap("d", "")) },
		func() { source.DeleteDropWatch(configMap("b", "")) },
		func() { source.ResetWatch() },
		func() { source.Modify(configMap("d", "x")) },
	}
	return fakeSource{lw: noStreams{source}, stop: source.Shutdown, step: func(n int) bool {
		if n < len(steps) {
			steps[n]()
		}
		return n < len(steps)
	}}
}

// TestFakeSources follows the sources that tests of controllers use, with both
// libraries.
func TestFakeSources(t *testing.T) {
	quiet(t)
	const clientsetSeen = `
		add a@/ (initial)
		add b@/ (initial)
		add c@/
		update a@/ -> a@/=x
		update a@/=x -> a@/=y
		delete b@/
		add b@/=new`
	const controlledSeen = `
		add a@1/ (initial)
		add b@2/ (initial)
		add c@3/
		update a@1/ -> a@4/=x
		delete c@5/
		update a@4/=x -> a@4/=x
		delete b@2/ (final state unknown)
		add d@6/
		update d@6/ -> d@8/=x`
	for _, c := range []struct {
		name   string
		source func(*testing.T) fakeSource
		only   string
		seen   string
		store  string
	}{
		{"fake clientset", fakeClientset(true), "", clientsetSeen, "a@/=y b@/=new c@/"},
		// Nobody tells that it cannot stream. client-go waits for the end of the
		// initial events for ever; ours gives up after three deadlines.
		{"fake clientset untold", fakeClientset(false), ours.name, clientsetSeen, "a@/=y b@/=new c@/"},
		{"FakeControllerSource", func(*testing.T) fakeSource { return controlled(framework.NewFakeControllerSource()) }, "",
			controlledSeen, "a@4/=x d@8/=x"},
		{"client-go's FakeControllerSource", func(*testing.T) fakeSource { return controlled(upstreamtesting.NewFakeControllerSource()) }, "",
			controlledSeen, "a@4/=x d@8/=x"},
	} {
		for _, l := range []library{ours, clientGo} {
			if c.only != "" && c.only != l.name {
				continue
			}
			t.Run(c.name+" with "+l.name, func(t *testing.T) {
				clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, true)
				r := newRecorder(nil)
				r.catchReports(t)
				synctest.Test(t, func(t *testing.T) {
					source := c.source(t)
					informer := l.newSharedInformer(source.lw, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
					if _, err := informer.AddEventHandler(r.handler("h")); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(context.Background())
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						informer.RunWithContext(ctx)
					}()
					if !l.waitForCacheSync(nil, informer.HasSynced) {
						t.Fatal("never synced")
					}
					for n := 0; source.step(n); n++ {
						time.Sleep(5 * time.Second)
					}
					cancel()
					<-ended
					source.stop()
					// Of objects without versions client-go takes the store's
					// version away.
					if got, _, _ := strings.Cut(showStore(informer.GetStore()), " (version"); got != c.store {
						t.Errorf("store: got %q, want %q", got, c.store)
					}
				})
				want := strings.TrimSpace(strings.ReplaceAll(c.seen, "\t", "")) + "\n"
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(r.handled(), "\n")); diff != "" {
					t.Errorf("calls of the handler (-want +got):\n%s", diff)
				}
			})
		}
	}
}
