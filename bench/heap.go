package main

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// heapNow is the size of all objects on the heap, garbage included.
func heapNow() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// liveHeap is the size of what is in use. One collection leaves what finalizers,
// cleanups and the victims of a sync.Pool hold, and what runs after a collection makes
// garbage of its own; so it collects until that changes nothing.
func liveHeap() uint64 {
	const most, pause, settled = 10, 20 * time.Millisecond, 1000
	runtime.GC()
	last := heapNow()
	for range most {
		time.Sleep(pause)
		runtime.GC()
		now := heapNow()
		if now+last/settled >= last {
			return now
		}
		last = now
	}
	return last
}

// sampleEvery is how often the heap is looked at between collections. A peak
// shorter than this is missed; looking takes some ten microseconds, so that it
// costs both contenders one percent of a core.
const sampleEvery = time.Millisecond

// A peak is the largest size that the heap has had since the watching began.
type peak struct {
	quit  chan struct{}
	found chan uint64
}

func watchPeak() *peak {
	p := &peak{quit: make(chan struct{}), found: make(chan uint64)}
	go p.watch()
	return p
}

// stop ends the watching and returns the peak.
func (p *peak) stop() uint64 {
	close(p.quit)
	return <-p.found
}

func (p *peak) watch() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for highest := heapNow(); ; highest = max(highest, heapNow()) {
		select {
		case <-tick.C:
		case <-p.quit:
			p.found <- max(highest, heapNow())
			return
		}
	}
}
