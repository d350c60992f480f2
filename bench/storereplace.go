package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tarnproject/tarn/bench/report"
)

// What is measured of a Replace, and of the store's size.
const (
	replaceEmpty = "Replace of an empty store"
	replaceFull  = "Replace of a full store"
	slowestGet   = "slowest Get during all"
	calmestGet   = "slowest Get in the calmest of three runs"
	storeHeap    = "heap per object"
	walkedHeap   = "heap per object, after reading all"
	entryHeap    = "heap per index entry"
)

func storeReplace(objects int) trial {
	t := trial{
		name: "store-replace", objects: objects,
		doc:     "The content of a store with three indexes is replaced, twice: first it is empty, then it has the same keys. Meanwhile another goroutine gets single pods.",
		entries: storeRunners(func(m *meter, create func(int) store) error { return measureReplace(m, create, objects) }),
	}
	for _, name := range []string{ourDropIn, ourStore} {
		t.targets = slices.Concat(t.targets,
			limits(name, theirStore, map[string]float64{replaceEmpty: 1, replaceFull: 1}),
			within(name, map[string]float64{slowestGet: 0.005}))
	}
	return t
}

func measureReplace(m *meter, create func(int) store, objects int) error {
	keys, pods := storePods(objects)
	var slowest []float64
	took := map[bool][]float64{}
	for range 3 {
		s := create(3)
		slowestNow := 0.0
		for _, full := range []bool{false, true} {
			replace := s.replacing(keys, pods)
			runtime.GC()
			done := make(chan float64)
			go func() {
				start := time.Now()
				replace()
				done <- time.Since(start).Seconds()
			}()
			seconds, worst := getUntil(s, keys, done)
			took[full] = append(took[full], seconds)
			slowestNow = max(slowestNow, worst)
			if n := s.each(); n != objects {
				return fmt.Errorf("the store holds %d pods, want %d", n, objects)
			}
		}
		slowest = append(slowest, slowestNow)
	}
	m.record(replaceEmpty, slices.Min(took[false]), report.Seconds)
	m.record(replaceFull, slices.Min(took[true]), report.Seconds)
	m.record(slowestGet, slices.Max(slowest), report.Seconds)
	// A store has its costs each time, the machine does not. This separates the
	// two, and is not judged.
	m.record(calmestGet, slices.Min(slowest), report.Seconds)
	return nil
}

// getUntil gets pods, some at a time with pauses in between, until done is closed,
// and returns the slowest time. Without the pauses it would mostly measure the
// scheduler, and not the store.
func getUntil(s store, keys []string, done <-chan float64) (said, slowest float64) {
	for i := 0; ; {
		select {
		case said = <-done:
			return said, slowest
		case <-time.After(100 * time.Microsecond):
		}
		for range 20 {
			start := time.Now()
			s.get(keys[i])
			slowest = max(slowest, time.Since(start).Seconds())
			i = (i + 1) % len(keys)
		}
	}
}

func storeSize(objects int) trial {
	return trial{
		name: "store-heap", objects: objects,
		doc:     "How much a store with two indexes takes by itself: keys, tree and indexes, without the pods. An index entry is what a third index adds for each pod.",
		entries: storeRunners(func(m *meter, create func(int) store) error { return measureHeap(m, create, objects) }),
		targets: slices.Concat(
			limits(ourDropIn, theirStore, map[string]float64{storeHeap: 1.3}),
			limits(ourStore, theirStore, map[string]float64{storeHeap: 1.3}),
		),
	}
}

func measureHeap(m *meter, create func(int) store, objects int) error {
	_, pods := storePods(objects)
	heapOf := func(indexes int, after func(store)) float64 {
		before := liveHeap()
		s := create(indexes)
		for _, pod := range pods {
			s.update(keyOf(pod), pod) // the store's own key
		}
		after(s)
		size := float64(liveHeap()) - float64(before)
		runtime.KeepAlive(s)
		return size / float64(objects)
	}
	two := heapOf(2, func(store) {})
	three := heapOf(3, func(store) {})
	m.record(storeHeap, two, report.Single)
	m.record(walkedHeap, heapOf(2, func(s store) {
		for range 3 {
			s.each()
		}
	}), report.Single)
	m.record(entryHeap, three-two, report.Single)
	runtime.KeepAlive(pods)
	return nil
}

var storeTrials = []trial{storeUpdate(10_000), storeUpdate(100_000), storeRead(100_000), storeReplace(200_000), storeSize(100_000)}
