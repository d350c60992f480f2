package sqlite

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// goal is the size of the heap at which the collector is to be done.
func goal() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// The collector expects the heap that a load will have. That ends with the load, and no
// later load gets a reserve.
func TestHeapReserve(t *testing.T) {
	const packed = 40 << 20
	var r heapReserve
	before := goal()
	first, second := r.hold(packed), r.hold(packed)
	if now := goal(); now < 4*packed*heapOfPacked {
		t.Errorf("with two reserves of %d bytes the collector's goal is %d, and was %d", packed*heapOfPacked, now, before)
	}
	first()
	third := r.hold(packed)
	second()
	third()
	if now := goal(); now >= before+packed {
		t.Errorf("after the loads the collector's goal is %d, and was %d", now, before)
	}
	defer r.hold(packed)()
	if now := goal(); now >= before+packed {
		t.Errorf("a later load made the collector's goal %d, which was %d", now, before)
	}
}

func TestNoHeapReserve(t *testing.T) {
	for name, test := range map[string]struct{ packed, limit int64 }{
		"for little":       {smallestReserve/heapOfPacked - 1, math.MaxInt64},
		"near the limit":   {80 << 20, 500 << 20},
		"beyond the limit": {80 << 20, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(test.limit))
			var r heapReserve
			r.hold(test.packed)()
			if r.over {
				t.Error("there was a reserve")
			}
		})
	}
}
