package cache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// meters is a provider of all metrics, which records the values of each by name.
type meters struct {
	mu     sync.Mutex
	values map[string][]float64
}

type meter struct {
	meters *meters
	name   string
}

func (m meter) Observe(v float64) {
	m.meters.mu.Lock()
	defer m.meters.mu.Unlock()
	m.meters.values[m.name] = append(m.meters.values[m.name], v)
}

func (m meter) Set(v float64) { m.Observe(v) }
func (m meter) Inc()          { m.Observe(1) }

func (m *meters) NewQueuedItemMetric(InformerNameAndResource) GaugeMetric { return meter{m, "queued"} }
func (m *meters) NewProcessingLatencyMetric(InformerNameAndResource) HistogramMetric {
	return meter{m, "latency"}
}
func (m *meters) NewStoreResourceVersionMetric(InformerNameAndResource) GaugeMetric {
	return meter{m, "store version"}
}

func (m *meters) NewListsMetric(string) CounterMetric             { return meter{m, "lists"} }
func (m *meters) NewListDurationMetric(string) SummaryMetric      { return meter{m, "list time"} }
func (m *meters) NewItemsInListMetric(string) SummaryMetric       { return meter{m, "list items"} }
func (m *meters) NewWatchesMetric(string) CounterMetric           { return meter{m, "watches"} }
func (m *meters) NewShortWatchesMetric(string) CounterMetric      { return meter{m, "short watches"} }
func (m *meters) NewWatchDurationMetric(string) SummaryMetric     { return meter{m, "watch time"} }
func (m *meters) NewItemsInWatchMetric(string) SummaryMetric      { return meter{m, "watch items"} }
func (m *meters) NewLastResourceVersionMetric(string) GaugeMetric { return meter{m, "last version"} }

func TestInformerMetrics(t *testing.T) {
	listing(t)
	m := &meters{values: map[string][]float64{}}
	var provider MetricsProvider = m
	providers.reflector.Store(&provider)
	t.Cleanup(func() { providers.reflector.Store(nil) })
	id := reserved(t)
	newRecorder(nil).catchReports(t)
	synctest.Test(t, func(t *testing.T) {
		// The first watch is very short, the second lasts for two seconds.
		server := serving(t, `
			list delay=3s 5: a@3 b@5
			watch: close
			list 6: a@3 b@5 c@6
			watch: mod a@7, wait 2s, close
			watch: mod a@8`)
		informer := NewSharedIndexInformerWithOptions(server, &corev1.ConfigMap{},
			SharedIndexInformerOptions{Identifier: id, InformerMetricsProvider: m})
		if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{}); err != nil {
			t.Fatal(err)
		}
		stop := running(informer.RunWithContext)
		time.Sleep(10 * time.Second)
		stop()
	})
	for name, want := range map[string][]float64{
		"lists":         {1, 1},
		"list time":     {3, 0},
		"list items":    {2, 3},
		"watches":       {1, 1, 1},
		"short watches": {1},
		"watch items":   {0, 1, 1},
		"last version":  {5, 6, 7, 8},
		"store version": {5, 6, 7, 8},
		"latency":       {0, 0, 0, 0},
	} {
		if diff := cmp.Diff(want, m.values[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := m.values["watch time"]; len(got) != 3 || got[0] != 0 || got[1] != 2 {
		t.Errorf("watch time: %v", got)
	}
	if got := m.values["queued"]; len(got) == 0 || slices.Max(got) < 2 || got[len(got)-1] > 1 {
		t.Errorf("queued: %v, want the two of the first list and then none", got)
	}
}

// TestNamesOfCheckers: a wait for an informer names what it waits for, in client-go's words.
func TestNamesOfCheckers(t *testing.T) {
	listing(t)
	names := map[string][]string{}
	for _, l := range []library{ours, clientGo} {
		informer := l.newSharedInformer(&ListWatch{}, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
		handle, err := informer.AddEventHandler(ResourceEventHandlerFuncs{})
		if err != nil {
			t.Fatal(err)
		}
		names[l.name] = []string{
			informer.HasSyncedChecker().Name(),
			handle.HasSyncedChecker().Name(),
			informer.GetController().HasSyncedChecker().Name(),
			informer.LastSyncResourceVersion(),
			informer.GetController().LastSyncResourceVersion(),
		}
	}
	if diff := cmp.Diff(names[clientGo.name], names[ours.name]); diff != "" {
		t.Errorf("names (-client-go +ours):\n%s", diff)
	}
}

// TestControllerOfAnInformer: it tells, and runs nothing.
func TestControllerOfAnInformer(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		informer := NewSharedInformer(serving(t, "list 5: a@3"), &corev1.ConfigMap{}, 0)
		controller := informer.GetController()
		controller.Run(nil) // would hang
		controller.RunWithContext(t.Context())
		if controller.HasSynced() {
			t.Error("synced although nothing runs")
		}
		stop := running(informer.RunWithContext)
		synctest.Wait()
		if !controller.HasSynced() || !IsDone(controller.HasSyncedChecker()) || controller.LastSyncResourceVersion() != "5" {
			t.Errorf("synced %v at %q", controller.HasSynced(), controller.LastSyncResourceVersion())
		}
		stop()
	})
}

func TestRegistrationsOfOthers(t *testing.T) {
	listing(t)
	ourInformer := NewSharedInformer(&ListWatch{}, &corev1.ConfigMap{}, 0)
	other := NewSharedInformer(&ListWatch{}, &corev1.ConfigMap{}, 0)
	theirs := clientGo.newSharedInformer(&ListWatch{}, &corev1.ConfigMap{}, SharedIndexInformerOptions{})
	foreign, err := theirs.AddEventHandler(ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := other.AddEventHandler(ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ourInformer.RemoveEventHandler(foreign); err == nil || !strings.Contains(err.Error(), "AddEventHandler") {
		t.Errorf("a registration of client-go's: %v", err)
	}
	if err := ourInformer.RemoveEventHandler(nil); err == nil {
		t.Error("nil was removed")
	}
	if err := ourInformer.RemoveEventHandler(own); err != nil {
		t.Errorf("a registration of another informer: %v, want nothing to happen", err)
	}
	if err := ShutDownEventHandler(other, own); err != nil { // returns: it never ran
		t.Error(err)
	}
}

func TestNilErrorHandlerIsTheDefault(t *testing.T) {
	listing(t)
	r := newRecorder(nil)
	r.catchReports(t)
	synctest.Test(t, func(t *testing.T) {
		informer := NewSharedInformer(serving(t, "list error 403"), &corev1.ConfigMap{}, 0)
		if err := informer.SetWatchErrorHandler(nil); err != nil {
			t.Fatal(err)
		}
		stop := running(informer.RunWithContext)
		synctest.Wait()
		stop()
	})
	if got := r.text("reported"); !strings.Contains(got, "forbidden") {
		t.Errorf("reported %q", got)
	}
}

// TestIndexersWhileRunning: an index added late knows what is there, and
// GetIndexers gives functions that work.
func TestIndexersWhileRunning(t *testing.T) {
	listing(t)
	synctest.Test(t, func(t *testing.T) {
		informer := NewSharedIndexInformer(serving(t, "list 5: a@3 b@5"), &corev1.ConfigMap{}, 0, Indexers{"none": nil})
		stop := running(informer.RunWithContext)
		synctest.Wait()
		if err := informer.AddIndexers(Indexers{"name": indexByName("")}); err != nil {
			t.Fatal(err)
		}
		found, err := informer.GetIndexer().ByIndex("name", "b")
		if err != nil || len(found) != 1 {
			t.Errorf("found %d objects, %v", len(found), err)
		}
		functions := informer.GetIndexer().GetIndexers()
		if _, there := functions["name"]; !there {
			t.Errorf("indexers: %v", slices.Sorted(maps.Keys(functions)))
		} else if values, err := functions["name"](&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "z"}}); err != nil || values[0] != "z" {
			t.Errorf("the function gives %v, %v", values, err)
		}
		stop()
	})
}

// With utilruntime configured not to crash, a panic of the lister-watcher or of the
// error handler is a failure like others: the informer tries again.
func TestPanicsOfTheUserAreFailures(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		lw := &ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				switch lists++; lists {
				case 1:
					panic("once")
				case 2:
					return nil, errors.New("no")
				}
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			},
			WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.SendInitialEvents != nil {
					return nil, errors.New("not streamed")
				}
				return watch.NewFake(), nil
			},
		}
		informer := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, Indexers{})
		if err := informer.SetWatchErrorHandler(func(*Reflector, error) { panic("handler") }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		if !WaitForCacheSync(ctx.Done(), informer.HasSynced) || informer.IsStopped() {
			t.Error("a panic ended the informer")
		}
		cancel()
		<-done
		if !informer.IsStopped() {
			t.Error("it does not say that it has stopped")
		}
	})
}

// A handler that is still busy sees that the informer has stopped.
func TestIsStoppedWhileAHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := onePod(t)
		informer := NewSharedIndexInformer(source, &corev1.Pod{}, 0, Indexers{})
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan struct{})
		if _, err := informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(any) {
			close(called)
			for !informer.IsStopped() {
				time.Sleep(10 * time.Millisecond)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		<-called
		cancel()
		<-done
		source.Broadcaster.Shutdown()
	})
}
