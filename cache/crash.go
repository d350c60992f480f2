package cache

import (
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// crashGuard calls code of the user's, which may panic. That is reported, and
// then, as utilruntime is told to, it goes on and ends the process, or ends only
// this call: the next one is made after a pause, so that a function that always
// panics does not do so in a loop.
type crashGuard struct{ crashed bool }

const pauseAfterCrash = time.Second

func (g *crashGuard) call(logger klog.Logger, f func()) {
	if g.crashed {
		time.Sleep(pauseAfterCrash)
	}
	g.crashed = true
	defer utilruntime.HandleCrashWithLogger(logger)
	f()
	g.crashed = false
}
