package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarnproject/tarn/bench/report"
)

// What is measured of reads.
const (
	eachTime    = "reading all / object"
	eachGarbage = "allocated by reading all / object"
	getAlone    = "Get alone"
	getBeside   = "Get beside a writer"
	getGarbage  = "allocations per Get"
	indexTime   = "ByIndex of 1,000"
	indexBytes  = "allocated by ByIndex of 1,000"
)

func storeRead(objects int) trial {
	return trial{
		name: "store-read", objects: objects,
		doc:     "A store with two indexes is read: all of it by List or, for tarn memory, by its iterator; single pods by key, alone and beside a writer that does not rest; the thousand pods of a namespace.",
		entries: storeRunners(func(m *meter, create func(int) store) error { return measureReads(m, create, objects) }),
		targets: slices.Concat(
			limits(ourDropIn, theirStore, map[string]float64{eachTime: 1, getAlone: 2, getBeside: 1, indexTime: 1}),
			limits(ourStore, theirStore, map[string]float64{eachTime: 1, getAlone: 2, getBeside: 1, indexTime: 1}),
			within(ourDropIn, map[string]float64{getGarbage: noAllocation}),
			within(ourStore, map[string]float64{getGarbage: noAllocation, eachGarbage: 0.1, indexBytes: 1024}),
		),
	}
}

func measureReads(m *meter, create func(int) store, objects int) error {
	keys, pods := storePods(objects)
	s := filled(create, 2, keys, pods)
	runtime.GC()
	found := 0
	next := 0
	get := func() {
		if s.get(keys[next]) {
			found++
		}
		next = (next + 1) % objects
	}
	each := func() { found += s.each() }
	namespaces := objects / perNamespace
	byIndex := func() {
		found += s.byIndex("namespace", namespaceOf(next%namespaces*perNamespace))
		next++
	}

	m.record(eachTime, best(each)/float64(objects), report.Seconds)
	_, bytes := garbage(20, each)
	m.record(eachGarbage, bytes/float64(objects), report.Single)

	m.record(getAlone, best(get), report.Seconds)
	allocations, _ := garbage(objects, get)
	m.record(getGarbage, allocations, report.Fraction)
	w := &writer{store: s, keys: keys, pods: pods}
	w.besides(func() { m.record(getBeside, middle(get), report.Seconds) })

	next = 0
	m.record(indexTime, best(byIndex), report.Seconds)
	_, bytes = garbage(100, byIndex)
	m.record(indexBytes, bytes, report.Single)

	if found == 0 || s.byIndex("namespace", namespaceOf(0)) != perNamespace || s.each() != objects {
		return fmt.Errorf("the store does not give what was put in")
	}
	return nil
}

// besides calls body while the writer writes without rest.
func (w *writer) besides(body func()) {
	var stop atomic.Bool
	var writing sync.WaitGroup
	writing.Go(func() {
		for !stop.Load() {
			w.write()
		}
	})
	body()
	stop.Store(true)
	writing.Wait()
}

// laps times something again and again, and gives the seconds that one call took
// in each lap.
func laps(call func()) (each []float64) {
	for calls := 1; len(each) < 20; {
		start := time.Now()
		for range calls {
			call()
		}
		if took := time.Since(start); took >= effort.lap {
			each = append(each, took.Seconds()/float64(calls))
		} else {
			calls *= 2
		}
	}
	return each
}

// best is the shortest lap: that which others on the machine disturbed least.
func best(call func()) float64 { return slices.Min(laps(call)) }

// middle is the median lap, for calls that are disturbed on purpose.
func middle(call func()) float64 { return report.Median(laps(call)) }

// noAllocation is the limit for calls that must not allocate: other goroutines of the process
// may allocate now and then.
const noAllocation = 0.01

// garbage counts what one call allocates. The figure is that of the whole process,
// in which nothing else happens.
func garbage(calls int, call func()) (allocations, bytes float64) {
	call()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(calls), float64(after.TotalAlloc-before.TotalAlloc) / float64(calls)
}
