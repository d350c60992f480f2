package cache

import (
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/tarnproject/tarn/internal/guard"
)

// crashGuard calls user code, which may panic. A panic is reported; then, depending
// on utilruntime, it ends the process, or only this call: the next one is made
// after a pause, so that a function that always panics does not do so in a loop.
type crashGuard struct{ crashed bool }

const pauseAfterCrash = time.Second

func (g *crashGuard) call(logger klog.Logger, f func()) {
	if g.crashed {
		time.Sleep(pauseAfterCrash)
	}
	g.crashed = true
	defer utilruntime.HandleCrashWithLogger(logger)
	if guard.Active() {
		defer explainWrite()
	}
	f()
	g.crashed = false
}

// explainWrite makes a panic for a write to a frozen object name the object, before
// utilruntime reports it.
func explainWrite() {
	v := recover()
	if v == nil {
		return
	}
	if message, ok := guard.Fault(v); ok {
		panic(message)
	}
	panic(v)
}
