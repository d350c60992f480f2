package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/bench/contender"
	"github.com/tarnproject/tarn/bench/replay"
	"github.com/tarnproject/tarn/bench/report"
)

// copyMeter takes the figures of one copy.
type copyMeter struct {
	result   report.Result
	name     string
	profiles string
	info     replay.Info

	before usage
	rss    uint64
	end    func()
}

// usage is what the process has used so far.
type usage struct {
	at      time.Time
	cpu     time.Duration
	mallocs uint64
	heap    uint64
	objects uint64
}

func usageNow() usage {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return usage{at: time.Now(), cpu: report.CPUTime(), mallocs: stats.Mallocs, heap: stats.HeapAlloc, objects: stats.HeapObjects}
}

func (m *copyMeter) record(name string, value float64, u report.Unit) {
	m.result = append(m.result, report.Measure{Name: name, Value: value, Unit: u})
}

func (m *copyMeter) perObject(v float64) float64 { return v / float64(m.info.Pods) }

func (m *copyMeter) begin() {
	liveHeap()
	debug.FreeOSMemory()
	m.rss = resetPeakRSS()
	m.end = profile(m.profiles, m.name, "sync")
	m.before = usageNow()
}

// synced takes what the copying cost, then what the copy itself costs.
func (m *copyMeter) synced() {
	after, peak := usageNow(), peakRSS()
	m.end()
	liveHeap()
	held := usageNow()
	m.record(heapPerObject, m.perObject(float64(held.heap)-float64(m.before.heap)), report.Small)
	m.record(objectsPerObject, m.perObject(float64(held.objects)-float64(m.before.objects)), report.Fraction)
	if peak > 0 {
		m.record(peakMemory, float64(peak)-float64(m.rss), report.Bytes)
	}
	m.record(syncTime, after.at.Sub(m.before.at).Seconds(), report.Seconds)
	m.record(cpuPerObject, m.perObject((after.cpu - m.before.cpu).Seconds()), report.Seconds)
	m.record(allocsPerObject, m.perObject(float64(after.mallocs-m.before.mallocs)), report.Fraction)
	heapProfile(m.profiles, m.name)
}

// leave has the copy complete on disk, and measures its size there.
func (m *copyMeter) leave(ctx context.Context, copied contender.Copy) error {
	if err := copied.Settled(ctx); err != nil {
		return err
	}
	files, json, err := copied.Leave(ctx)
	if err != nil {
		return err
	}
	m.record(diskSize, float64(files)/float64(json), report.Times)
	return nil
}

// collect measures what the copy adds to every collection.
func (m *copyMeter) collect() {
	times, cpu := make([]float64, collections), make([]float64, collections)
	for i := range times {
		began, used := time.Now(), report.CPUTime()
		runtime.GC()
		times[i], cpu[i] = time.Since(began).Seconds(), (report.CPUTime() - used).Seconds()
	}
	m.record(gcTime, report.Median(times), report.Seconds)
	m.record(gcCPU, report.Median(cpu), report.Seconds)
}

func (m *copyMeter) updates(follow func() error) error {
	if m.info.Updates == 0 {
		return nil
	}
	liveHeap()
	end := profile(m.profiles, m.name, "updates")
	before := usageNow()
	if err := follow(); err != nil {
		return err
	}
	after := usageNow()
	end()
	n := float64(m.info.Updates)
	m.record(cpuPerUpdate, (after.cpu-before.cpu).Seconds()/n, report.Seconds)
	m.record(allocsPerUpdate, float64(after.mallocs-before.mallocs)/n, report.Fraction)
	liveHeap()
	m.record(heapUpdated, m.perObject(float64(usageNow().heap)-float64(m.before.heap)), report.Small)
	return nil
}

func (m *copyMeter) reads(copied contender.Copy) error {
	type key struct{ namespace, name string }
	keys := make([]key, 0, m.info.Pods)
	list := func(visit func(metav1.Object)) (n int, err error) {
		err = copied.List(func(o metav1.Object) { n++; visit(o) })
		if err == nil && n != m.info.Pods {
			err = fmt.Errorf("%d objects are listed of %d", n, m.info.Pods)
		}
		return n, err
	}
	if _, err := list(func(o metav1.Object) { keys = append(keys, key{o.GetNamespace(), o.GetName()}) }); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(5, 6))
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })

	spent, err := repeat(func() (int, error) {
		for _, k := range keys[:min(len(keys), 1_000)] {
			if _, err := copied.Get(k.namespace, k.name); err != nil {
				return 0, err
			}
		}
		return min(len(keys), 1_000), nil
	})
	if err != nil {
		return err
	}
	m.record(getTime, spent.seconds, report.Seconds)
	if spent, err = repeat(func() (int, error) { return list(func(metav1.Object) {}) }); err != nil {
		return err
	}
	m.record(listTime, spent.seconds, report.Seconds)
	m.record(listAllocs, spent.allocations, report.Fraction)
	return nil
}

// cost is that of one of many equal steps.
type cost struct{ seconds, allocations float64 }

// repeat does something for a while, which says how many steps it took.
func repeat(do func() (steps int, err error)) (cost, error) {
	runtime.GC()
	before, total := usageNow(), 0
	for total == 0 || time.Since(before.at) < readFor {
		n, err := do()
		if err != nil {
			return cost{}, err
		}
		total += n
	}
	after := usageNow()
	n := float64(total)
	return cost{after.at.Sub(before.at).Seconds() / n, float64(after.mallocs-before.mallocs) / n}, nil
}
