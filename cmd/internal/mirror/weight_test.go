package mirror

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
)

// pod makes an object that shares nothing.
func pod(i int) map[string]any {
	var containers []any
	for j := range 3 {
		var env []any
		for k := range 4 {
			env = append(env, map[string]any{"name": fmt.Sprint("VARIABLE_", i, j, k), "value": fmt.Sprint("some value of pod ", i)})
		}
		containers = append(containers, map[string]any{
			"name": fmt.Sprint("container-", i, j), "image": fmt.Sprint("registry.example.org/team/image:", i), "env": env,
			"ports": []any{map[string]any{"containerPort": int64(8000 + i), "ratio": float64(i) + 0.5, "open": true}},
		})
	}
	return map[string]any{
		"metadata": map[string]any{"namespace": fmt.Sprint("namespace-", i%7), "name": fmt.Sprint("pod-", i)},
		"spec":     map[string]any{"containers": containers, "nothing": nil, "empty": []any{}},
	}
}

func fill(t *testing.T, n int, make func(i int) map[string]any) *memory.Store[Object] {
	t.Helper()
	store := memory.New[Object]()
	var items []tarn.Item[Object]
	for i := range n {
		items = append(items, tarn.Item[Object]{Meta: tarn.Meta{Key: tarn.Key(fmt.Sprintf("%06d", i))}, Object: &unstructured.Unstructured{Object: make(i)}})
	}
	if err := store.Replace(items, tarn.At("1")); err != nil {
		t.Fatal(err)
	}
	return store
}

// What is estimated is near what the heap has.
func TestWeightOfTheHeap(t *testing.T) {
	const n = 2000
	heap := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	before := heap()
	store := fill(t, n, pod)
	held := (heap() - before) / n
	estimated := weigh(store)
	if estimated < held*3/4 || estimated > held*5/4 {
		t.Errorf("estimated %d bytes per object, the heap has %d", estimated, held)
	}
	runtime.KeepAlive(store)
}

// What objects share is counted once.
func TestWeightOfSharedParts(t *testing.T) {
	alone := weigh(fill(t, 100, pod))
	spec := pod(1)["spec"]
	shared := weigh(fill(t, 100, func(i int) map[string]any {
		return map[string]any{"metadata": pod(i)["metadata"], "spec": spec}
	}))
	if shared > alone/4 {
		t.Errorf("%d bytes per object with a common spec, %d without", shared, alone)
	}
	var list any = []any{"a long enough text", "another text"}
	with := weigh(fill(t, 10, func(int) map[string]any { return map[string]any{"a": list, "b": list} }))
	without := weigh(fill(t, 10, func(int) map[string]any { return map[string]any{"a": nil, "b": nil} }))
	if with <= without || with > without+20 {
		t.Errorf("a list of some 120 bytes that ten objects share twice makes %d bytes of %d", with, without)
	}
	if empty := weigh(memory.New[Object]()); empty != 0 {
		t.Errorf("nothing weighs %d", empty)
	}
}

// However large the store is, some hundred objects are sampled, in runs.
func TestWeightIsASample(t *testing.T) {
	for _, n := range []int{1, 31, 32, 33, 255, 256, 257, 511, 1000, 10_000} {
		at, looked := 0, 0
		for range n {
			if sampled(at, n) {
				looked++
			}
			at++
		}
		if want := min(n, weighRuns*weighRun); looked < want*3/4 || looked > want*5/4 {
			t.Errorf("of %d objects %d are looked at", n, looked)
		}
	}
}

// It is weighed again when something has changed, and not too often.
func TestWeightIsCached(t *testing.T) {
	small := fill(t, 10, func(int) map[string]any { return map[string]any{} })
	large := fill(t, 10, pod)
	var w weight
	now := time.Unix(1000, 0)
	w.update(now, small, 1)
	first := w.perObject()
	if w.update(now.Add(weighEvery/2), large, 2); w.perObject() != first {
		t.Error("weighed again too soon")
	}
	if w.update(now.Add(time.Hour), large, 1); w.perObject() != first {
		t.Error("weighed again although nothing happened")
	}
	if w.update(now.Add(2*time.Hour), large, 2); w.perObject() <= first {
		t.Error("not weighed again")
	}
}
