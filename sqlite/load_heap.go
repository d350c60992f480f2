package sqlite

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
)

const (
	// smallestReserve is the size from which a reserve is worth having.
	smallestReserve = 16 << 20
	// largestReserve limits it, because it is address space that a system may count.
	largestReserve = 1 << 30
	// heapOfPacked is how many bytes of heap a packed byte becomes at most: a real pod has
	// 2.6 KB packed and 6 KB in the store, beside what a load drops. With 2, the collector
	// ran once near the end of a load of 30,000 pods, for up to a quarter of its CPU.
	heapOfPacked = 3
)

// loadReserve is the reserve of this process.
var loadReserve heapReserve

// heapReserve keeps the garbage collector from running while a process starts with what is
// on disk. Nearly all that a load allocates stays, yet a heap that grows from nothing is
// collected whenever it has doubled, which took a sixth of a load's time. The reserve is a
// block of the size that the heap will have. It counts for the collector, which so expects
// a heap of twice that; nobody writes to it, so it never takes physical memory.
//
// Why not debug.SetGCPercent: that is the program's own setting, which may be changed at the
// same time, and without it nothing bounds the heap.
//
// Only loads that begin before the first ones have ended get a reserve: a program that runs
// has garbage, which would grow by the size of the reserve before it is collected.
type heapReserve struct {
	mu    sync.Mutex
	loads int
	over  bool
}

// hold makes a reserve for a load of this size, unless it does not fit below the memory
// limit. The load calls release at its end.
func (r *heapReserve) hold(packed int64) (release func()) {
	size := min(packed*heapOfPacked, largestReserve)
	if size < smallestReserve || size > belowLimit()/4 || !r.begin() {
		return func() {}
	}
	block := new(strings.Builder)
	block.Grow(int(size)) // make would clear memory that was used before, all of it
	return func() {
		runtime.KeepAlive(block)
		r.end()
	}
}

func (r *heapReserve) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.loads++
	return true
}

func (r *heapReserve) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loads--
	r.over = r.loads == 0
}

// belowLimit is how much memory the process may still take by its soft limit.
func belowLimit() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return limit
	}
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(taken)
	return limit - int64(taken[0].Value.Uint64()-taken[1].Value.Uint64())
}
