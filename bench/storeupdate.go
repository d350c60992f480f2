package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tarnproject/tarn/bench/report"
)

// What is measured of writes. A paced Update is timed from its call to its return:
// a late wake-up of the writer, because others have the processors, does not count.
const (
	pacedAlone     = "paced Update alone, median"
	pacedMedian    = "paced Update beside 10 that list, median"
	pacedMean      = "paced Update beside 10 that list, mean"
	pacedLast      = "paced Update beside 10 that list, 99th percentile"
	pacedRatio     = "paced Update beside 10 that list / alone, median"
	pacedMeanRatio = "paced Update beside 10 that list / alone, mean"
	writeAlone     = "time per write alone"
	writeBeside    = "time per write beside 10 that list"
	writeShare     = "fair share of the CPU / what the writer gets of it beside 10 that list"
)

const (
	listers = 10
	// pace is one update in a millisecond.
	pace = time.Millisecond
)

// unshared is the floor: client-go's store, written by one, while the others make
// slices of pods, as List does, and leave the store alone. What the writer loses
// then it loses to Go and to the processor's caches: while the garbage collector
// runs, a goroutine that allocates has to assist it, and may then have to wait for a
// processor behind all others.
const unshared = "unshared"

func storeUpdate(objects int) trial {
	t := trial{
		name:    fmt.Sprintf("store-update-%dk", objects/1000),
		objects: objects,
		doc:     "One goroutine updates pods in a store with two indexes: one pod in a millisecond, then as fast as it can; first alone, then beside ten goroutines that only list, by List or, for tarn memory, by its iterator.",
		entries: storeRunners(func(m *meter, create func(int) store) error { return measureUpdates(m, create, objects) }),
	}
	t.entries = append(t.entries, runner{unshared, theirStore, func(_ context.Context, m *meter) error {
		return measureUpdates(m, func(indexes int) store { return &floor{newClientGo(indexes), make([]any, 0, objects)} }, objects)
	}})
	t.targets = slices.Concat(
		// What unshared shows beside these is not judged: it says how much of a miss
		// is the store's.
		within(ourDropIn, map[string]float64{pacedRatio: 5, writeShare: 1 / 0.8}),
		within(ourStore, map[string]float64{pacedRatio: 5, writeShare: 1 / 0.8}),
		limits(ourDropIn, theirStore, map[string]float64{writeAlone: 1 / 0.3}),
		limits(ourStore, theirStore, map[string]float64{writeAlone: 1 / 0.3}),
	)
	return t
}

func measureUpdates(m *meter, create func(int) store, objects int) error {
	keys, pods := storePods(objects)
	w := &writer{store: filled(create, 2, keys, pods), keys: keys, pods: pods}
	if n := w.each(); n != objects {
		return fmt.Errorf("the store holds %d pods, want %d", n, objects)
	}
	w.pacedTurns(m)
	w.busyTurns(m)
	return nil
}

// writer updates one pod after the other.
type writer struct {
	store
	keys []string
	pods []*corev1.Pod
	next int
}

func (w *writer) write() {
	w.update(w.keys[w.next], w.pods[w.next])
	w.next = (w.next + 1) % len(w.keys)
}

func (w *writer) pacedTurns(m *meter) {
	var alone, beside []float64
	for range effort.turns {
		runtime.GC()
		alone = append(alone, w.paced()...)
		w.besideListers(func() { beside = append(beside, w.paced()...) })
	}
	slices.Sort(beside)
	m.record(pacedAlone, report.Median(alone), report.Seconds)
	m.record(pacedMedian, report.Median(beside), report.Seconds)
	m.record(pacedMean, mean(beside), report.Seconds)
	m.record(pacedLast, beside[len(beside)*99/100], report.Seconds)
	m.record(pacedRatio, report.Median(beside)/report.Median(alone), report.Times)
	m.record(pacedMeanRatio, mean(beside)/mean(alone), report.Times)
}

// paced gives the seconds that each of some updates took.
func (w *writer) paced() (took []float64) {
	for end := time.Now().Add(effort.paced); len(took) < effort.updates && (len(took) == 0 || time.Now().Before(end)); {
		time.Sleep(pace)
		start := time.Now()
		w.write()
		took = append(took, time.Since(start).Seconds())
	}
	return took
}

// busyTurns writes without rest. The fair share of the CPU is the time that the
// whole process has got, divided by its goroutines: on two quiet cores 2/11, and
// the same part of less where others have work for the machine too.
func (w *writer) busyTurns(m *meter) {
	var alone, beside, share []float64
	for range effort.turns {
		runtime.GC()
		writes, wall, cpu := w.busy(effort.busy / 5)
		perWrite := cpu / writes
		alone = append(alone, wall/writes)
		w.besideListers(func() {
			writes, wall, cpu := w.busy(effort.busy)
			beside = append(beside, wall/writes)
			share = append(share, cpu/(listers+1)/(writes*perWrite))
		})
	}
	m.record(writeAlone, report.Median(alone), report.Seconds)
	m.record(writeBeside, report.Median(beside), report.Seconds)
	m.record(writeShare, report.Median(share), report.Times)
}

// busy writes for some time, and says how much came of it and how many seconds it
// took, of the clock and of the process's CPU time.
func (w *writer) busy(length time.Duration) (writes, wall, cpu float64) {
	start, cpuStart := time.Now(), report.CPUTime()
	for time.Since(start) < length {
		for range 64 {
			w.write()
		}
		writes += 64
	}
	return writes, time.Since(start).Seconds(), (report.CPUTime() - cpuStart).Seconds()
}

// besideListers calls body while others list.
func (w *writer) besideListers(body func()) {
	var stop atomic.Bool
	var listing, started sync.WaitGroup
	started.Add(listers)
	for range listers {
		listing.Go(func() {
			w.each()
			started.Done()
			for !stop.Load() {
				w.each()
			}
		})
	}
	started.Wait()
	body()
	stop.Store(true)
	listing.Wait()
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// floor is what unshared says.
type floor struct {
	store
	// pods are the first that were put in, as many as there is room for.
	pods []any
}

func (f *floor) update(key string, pod *corev1.Pod) {
	f.store.update(key, pod)
	if len(f.pods) < cap(f.pods) {
		f.pods = append(f.pods, pod)
	}
}

func (f *floor) each() int { return count(append(make([]any, 0, len(f.pods)), f.pods...)) }
