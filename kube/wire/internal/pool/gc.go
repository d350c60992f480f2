package pool

import (
	"runtime"
	"weak"
)

// GCSentinel is garbage from the start: its cleanup runs after the next garbage
// collection. It has a pointer so that it is an allocation of its own.
type GCSentinel struct{ _ *byte }

// afterEachGC makes a pool collect after each garbage collection, for as long as
// the pool exists.
//
// Why not a goroutine with a timer: something would have to stop it, and it would
// run through quiet times. Why not in the calls of get and put: an unused pool
// would keep young parts for ever.
func afterEachGC(p weak.Pointer[Pool]) {
	runtime.AddCleanup(new(GCSentinel), func(p weak.Pointer[Pool]) {
		parts := p.Value()
		if parts == nil {
			return
		}
		for i := range parts.shards {
			parts.shards[i].collect(false)
		}
		afterEachGC(p)
	}, p)
}
