package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// collectHandledErrors replaces the error handlers for a test.
func collectHandledErrors(t *testing.T) *[]string {
	var handled []string
	previous := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = previous })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, keysAndValues ...any) {
			line := msg + " " + fmt.Sprint(keysAndValues)
			if index, ok := errors.AsType[*memory.IndexError](err); ok {
				line += ": " + index.Index + ": " + index.Err.Error()
			} else if err != nil {
				line += ": " + err.Error()
			}
			handled = append(handled, line)
		},
	}
	return &handled
}

func stored(name, version string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: name, ResourceVersion: version}
}

func TestIndexFunctionThatFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		index  IndexFunc
		report string
	}{
		{"error", func(any) ([]string, error) { return []string{"x"}, errors.New("no luck") }, "no luck"},
		{"panic", func(any) ([]string, error) { panic("boom") }, "the index function panicked: boom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			handled := collectHandledErrors(t)
			x := NewIndexer(MetaNamespaceKeyFunc, Indexers{"bad": c.index, "name": func(obj any) ([]string, error) {
				return []string{obj.(*metav1.ObjectMeta).Name}, nil
			}})
			if err := x.Add(stored("a", "1")); err != nil {
				t.Fatal(err)
			}
			want := []string{"An object is missing from an index [key a]: bad: " + c.report}
			if !slices.Equal(*handled, want) {
				t.Errorf("handled %q, want %q", *handled, want)
			}
			if _, exists, _ := x.GetByKey("a"); !exists {
				t.Error("the object was not stored")
			}
			if keys, err := x.IndexKeys("name", "a"); err != nil || len(keys) != 1 {
				t.Errorf("the other index has %v, %v", keys, err)
			}
			if values := x.ListIndexFuncValues("bad"); len(values) != 0 {
				t.Errorf("the failing index has %v", values)
			}
			if err := x.AddIndexers(Indexers{"late": c.index}); err != nil {
				t.Errorf("an index that cannot take one object was refused: %v", err)
			}
			if len(*handled) != 2 {
				t.Errorf("handled %q, want one more for the new index", *handled)
			}
		})
	}
}

func TestManyIndexFailuresAreSummedUp(t *testing.T) {
	handled := collectHandledErrors(t)
	x := NewIndexer(MetaNamespaceKeyFunc, Indexers{"bad": func(any) ([]string, error) { return nil, errors.New("no luck") }})
	var list []any
	for i := range 50 {
		list = append(list, stored(fmt.Sprint(i), ""))
	}
	if err := x.Replace(list, "7"); err != nil {
		t.Fatal(err)
	}
	if len(*handled) != unindexedShown+1 {
		t.Fatalf("%d errors handled", len(*handled))
	}
	if last := (*handled)[unindexedShown]; !strings.HasPrefix(last, "More objects are missing from an index [objects 40]") {
		t.Errorf("the last one is %q", last)
	}
}

func TestIndexWithoutFunction(t *testing.T) {
	handled := collectHandledErrors(t)
	x := NewIndexer(MetaNamespaceKeyFunc, Indexers{"none": nil, NamespaceIndex: MetaNamespaceIndexFunc})
	if len(*handled) != 1 || !strings.Contains((*handled)[0], `index "none" has no function`) {
		t.Errorf("handled %q", *handled)
	}
	if err := x.Add(stored("a", "1")); err != nil {
		t.Fatal(err)
	}
	if found, err := x.ByIndex(NamespaceIndex, ""); err != nil || len(found) != 1 {
		t.Errorf("the good index found %v, %v", found, err)
	}
}

func TestVersionIsToldOnlyWithAtomicFIFO(t *testing.T) {
	x := NewStore(MetaNamespaceKeyFunc)
	x.Bookmark("5")
	for enabled, want := range map[bool]string{true: "5", false: ""} {
		t.Run(fmt.Sprint(enabled), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.AtomicFIFO, enabled)
			if rv := x.LastStoreSyncResourceVersion(); rv != want {
				t.Errorf("version %q, want %q", rv, want)
			}
		})
	}
}

// client-go leaves the transformer out of transactions, and so stores objects of
// two shapes side by side.
func TestTransactionTransforms(t *testing.T) {
	failure := errors.New("will not")
	x := NewStore(MetaNamespaceKeyFunc, WithTransformer(func(obj any) (any, error) {
		o := *obj.(*metav1.ObjectMeta)
		if o.Name == "bad" || o.DeletionTimestamp != nil {
			return nil, failure
		}
		o.Labels = map[string]string{"transformed": "yes"}
		return &o, nil
	}))
	if err := x.Add(stored("gone", "1")); err != nil {
		t.Fatal(err)
	}
	final := stored("gone", "4") // is not stored, so not transformed either
	final.DeletionTimestamp = &metav1.Time{}
	err := x.(TransactionStore).Transaction(
		Transaction{Type: TransactionTypeAdd, Object: stored("a", "2")},
		Transaction{Type: TransactionTypeUpdate, Object: stored("bad", "3")},
		Transaction{Type: TransactionTypeDelete, Object: final},
	)
	if err == nil || !slices.Equal(err.SuccessfulIndices, []int{0, 2}) || len(err.Errors) != 1 || !errors.Is(err.Errors[0], failure) {
		t.Errorf("error %+v", err)
	}
	if keys := x.ListKeys(); !slices.Equal(keys, []string{"a"}) {
		t.Errorf("keys %v", keys)
	}
	if item, _, _ := x.GetByKey("a"); item.(*metav1.ObjectMeta).Labels["transformed"] != "yes" {
		t.Errorf("stored %v as it came", item)
	}
	if rv := x.LastStoreSyncResourceVersion(); rv != "4" {
		t.Errorf("version %q", rv)
	}
}

func TestIndexersAreSafeToRead(t *testing.T) {
	given := Indexers{NamespaceIndex: MetaNamespaceIndexFunc}
	x := NewIndexer(MetaNamespaceKeyFunc, given)
	var adding sync.WaitGroup
	adding.Go(func() {
		for i := range 50 {
			if err := x.AddIndexers(Indexers{strconv.Itoa(i): MetaNamespaceIndexFunc}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 50 {
		for name, function := range x.GetIndexers() {
			if values, err := function(stored("a", "")); err != nil || len(values) != 1 {
				t.Errorf("%s gave %v, %v", name, values, err)
			}
		}
	}
	adding.Wait()
	if n := len(x.GetIndexers()); n != 51 {
		t.Errorf("%d indexers", n)
	}
	if len(given) != 1 {
		t.Errorf("the caller's own map grew to %d", len(given))
	}
}

// What a replica writes below shows through the interface.
func TestIndexerOverItsMemory(t *testing.T) {
	gauge := &lastValue{}
	x := newIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc},
		[]StoreOption{WithStoreMetrics(reserved(t), gauge)})
	obj := &metav1.ObjectMeta{Namespace: "ns", Name: "a"}
	if err := x.memory().Apply([]tarn.Change[any]{{Type: tarn.Add, Key: "ns/a", Object: obj}}, tarn.At("12")); err != nil {
		t.Fatal(err)
	}
	x.publish()
	found, err := x.ByIndex(NamespaceIndex, "ns")
	if err != nil || len(found) != 1 || found[0] != any(obj) {
		t.Errorf("found %v, %v", found, err)
	}
	if item, exists, err := x.Get(obj); !exists || item != any(obj) || err != nil {
		t.Errorf("got %v, %v, %v", item, exists, err)
	}
	if rv := x.LastStoreSyncResourceVersion(); rv != "12" || gauge.value() != 12 {
		t.Errorf("version %q, gauge %v", rv, gauge.value())
	}
}

// lastValue is a metrics provider and its only gauge.
type lastValue struct {
	InformerMetricsProvider
	mu sync.Mutex
	v  float64
}

func (l *lastValue) NewStoreResourceVersionMetric(InformerNameAndResource) GaugeMetric { return l }

func (l *lastValue) Set(v float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.v = v
}

func (l *lastValue) value() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.v
}

var reservedNames atomic.Int64

// reserved is an identity that has metrics, another one with each call.
func reserved(t *testing.T) InformerNameAndResource {
	name, err := NewInformerName(fmt.Sprint(t.Name(), reservedNames.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(name.Release)
	return name.WithResource(schema.GroupVersionResource{Version: "v1", Resource: "things"})
}
