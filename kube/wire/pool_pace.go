package wire

import (
	"runtime"
	"weak"
)

// pacemaker is garbage from the start: that it is collected says that a garbage
// collection took place. It has a pointer so that it is an allocation of its own.
type pacemaker struct{ _ *byte }

// onCollection lets a pool collect after each garbage collection for as long as
// there is the pool.
//
// Why not a goroutine with a timer: it would need someone to stop it, and it would
// work through quiet times. Why not in the calls of get and put: a pool that nobody
// asks would keep young parts for ever.
func onCollection(p weak.Pointer[Pool]) {
	runtime.AddCleanup(new(pacemaker), func(p weak.Pointer[Pool]) {
		pool := p.Value()
		if pool == nil {
			return
		}
		for i := range pool.shards {
			pool.shards[i].collect(false)
		}
		onCollection(p)
	}, p)
}
