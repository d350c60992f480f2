package pool

import (
	"runtime"
	"weak"
)

// GCSentinel is garbage from the start: that it is collected says that a garbage
// collection took place. It has a pointer so that it is an allocation of its own.
type GCSentinel struct{ _ *byte }

// afterEachGC lets a pool collect after each garbage collection for as long as
// there is the pool.
//
// Why not a goroutine with a timer: it would need someone to stop it, and it would
// work through quiet times. Why not in the calls of get and put: a pool that nobody
// asks would keep young parts for ever.
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
